/**
 * The life of a request and its money as pure transitions: the rules that the Lua scripts of shared/redis carry
 * out. Nothing at run time calls this module; tests explore it under every interleaving of crashes, lost answers
 * and double deliveries, and compare the scripts with it step by step.
 */
export interface Request {
  state: 'absent' | 'accepted' | 'running' | 'done' | 'void';
  /** The latest delivery that has claimed the request. */
  fence: number;
  /** The call that made the claim, so that the same call sent twice is not two claims. */
  owner: string;
  /** Number of the last event in the stream. */
  sentSeq: number;
  /** Micro-credits held. */
  hold: number;
  /** Micro-credits that the longest answer may take. */
  most: number;
  cancelled: boolean;
  /** Another call reads it, or was promised that it ends. */
  joined: boolean;
  /** Terminal events in the stream. */
  terminals: number;
}

export interface Account {
  /** As MongoDB has it, and its version. */
  book: number;
  version: number;
  /** Finished, not yet in `book`, by request. */
  pending: ReadonlyMap<string, number>;
  held: number;
}

/** What protects the promises; a test removes each in turn and must then find a broken promise. */
export interface Guards {
  /** Only a later delivery may claim. */
  fenceAtClaim: boolean;
  /** Only the delivery that holds the fence may append. */
  fenceAtAppend: boolean;
  /** Only the delivery that holds the fence may finish. */
  fenceAtFinish: boolean;
  /** An ended request takes no second end. */
  oneEnd: boolean;
  /** A batch that was sent again is not written again. */
  appendOnce: boolean;
  /** A delivery that finds text of another does not generate again. */
  endInterrupted: boolean;
  /** The ledger refuses a request it knows. */
  ledgerOnce: boolean;
  /** Only a higher version of the book replaces a lower one. */
  versionedBook: boolean;
  /** A void is for an accepted request only. */
  voidAcceptedOnly: boolean;
  /** An error for one call takes nothing from another one that has joined. */
  joinedStays: boolean;
  /** Text is released only within what is held. */
  gateOnGrant: boolean;
  /** A renewal holds no more than there is. */
  grantWithinBalance: boolean;
  /** A charge takes no more than was held, what is left beside it, and the overdraft. */
  chargeWithinBalance: boolean;
}

export const ALL_GUARDS: Guards = {
  fenceAtClaim: true,
  fenceAtAppend: true,
  fenceAtFinish: true,
  oneEnd: true,
  appendOnce: true,
  endInterrupted: true,
  ledgerOnce: true,
  versionedBook: true,
  voidAcceptedOnly: true,
  joinedStays: true,
  gateOnGrant: true,
  grantWithinBalance: true,
  chargeWithinBalance: true,
};

export const NO_REQUEST: Request = {
  state: 'absent',
  fence: 0,
  owner: '',
  sentSeq: 0,
  hold: 0,
  most: 0,
  cancelled: false,
  joined: false,
  terminals: 0,
};

export interface World {
  request: Request;
  account: Account;
}

/** The book less what has finished and is not in it yet. */
function balanceOf({ book, pending }: Account): number {
  return [...pending.values()].reduce((balance, cost) => balance - cost, book);
}

/** What is asked ahead of need takes at most this part of what is left; see shared/requests/lua/account.lua. */
const SHARE = 16;

/** Raises what a request holds: all it must hold as far as there is so much, what it asks ahead as far as that is little. */
function raiseHold({ request, account }: World, must: number, ahead: number, isBounded: boolean): World {
  const left = balanceOf(account) - account.held;
  const mustMore = Math.max(0, must - request.hold);
  const aheadMore = Math.min(Math.max(0, ahead - request.hold), Math.floor(left / SHARE));
  const within = left < mustMore ? Math.max(0, Math.min(mustMore, left)) : Math.max(mustMore, aheadMore);
  const more = isBounded ? within : mustMore;
  return { request: { ...request, hold: request.hold + more }, account: { ...account, held: account.held + more } };
}

export type AdmitOutcome = 'admitted' | 'void' | 'credits' | 'credits_in_flight';

/**
 * The one request that a balance always admits holds no more than the balance. Sent again after a lost answer it is
 * admitted, whatever has become of it meanwhile: its caller waits.
 */
export function admit(world: World, estimate: number, most = estimate): { world: World; outcome: AdmitOutcome } {
  const { request, account } = world;
  if (request.state === 'void') return { world, outcome: 'void' };
  if (request.state !== 'absent') return { world, outcome: 'admitted' };
  const balance = balanceOf(account);
  if (balance <= 0) return { world, outcome: 'credits' };
  if (account.held > 0 && balance - account.held < estimate) return { world, outcome: 'credits_in_flight' };
  const hold = Math.min(estimate, balance);
  return {
    world: {
      request: { ...request, state: 'accepted', hold, most },
      account: { ...account, held: account.held + hold },
    },
    outcome: 'admitted',
  };
}

/** A second call of the same caller, asynchronous: `promised`, it is told that the request ends. */
export function join(world: World): { world: World; promised: boolean } {
  const { request } = world;
  if (request.state === 'absent' || request.state === 'void') return { world, promised: false };
  const joined = request.joined || request.state !== 'done';
  return { world: { ...world, request: { ...request, joined } }, promised: true };
}

/** Takes an admission back; whoever reads hears of it. `isSwept`: nothing can run it. Returns the state that was found. */
export function voidLater(
  world: World,
  guards: Guards,
  isSwept = false,
): { world: World; outcome: Request['state'] | 'joined' } {
  const { request, account } = world;
  const { state } = request;
  if (guards.voidAcceptedOnly && state !== 'accepted' && state !== 'absent') return { world, outcome: state };
  if (guards.joinedStays && state === 'accepted' && request.joined && !isSwept) return { world, outcome: 'joined' };
  const end = state === 'absent' ? {} : { sentSeq: 1, terminals: request.terminals + 1 };
  return {
    world: {
      request: { ...request, ...end, state: 'void', hold: 0 },
      account: { ...account, held: account.held - request.hold },
    },
    outcome: state,
  };
}

export interface ClaimCall {
  fence: number;
  owner: string;
}

export function claim(
  world: World,
  { fence, owner }: ClaimCall,
  guards: Guards,
): { world: World; outcome: 'run' | 'drop' } {
  const { request } = world;
  const isOpen = request.state === 'accepted' || request.state === 'running';
  const isStale = request.fence >= fence && request.owner !== owner;
  if (!isOpen || (guards.fenceAtClaim && isStale)) return { world, outcome: 'drop' };
  const running: Request = { ...request, state: 'running', fence, owner };
  return { world: raiseHold({ ...world, request: running }, 0, request.most, true), outcome: 'run' };
}

export type WriteOutcome = 'ok' | 'cancelled' | 'superseded';

export function append(
  world: World,
  call: { fence: number; lastSeq: number },
  guards: Guards,
): { world: World; outcome: WriteOutcome; written: boolean } {
  const { request } = world;
  const mayWrite = request.state === 'running' && (!guards.fenceAtAppend || request.fence === call.fence);
  if (!mayWrite) return { world, outcome: 'superseded', written: false };
  const outcome = request.cancelled ? 'cancelled' : 'ok';
  if (guards.appendOnce && request.sentSeq >= call.lastSeq) return { world, outcome, written: false };
  return { world: { ...world, request: { ...request, sentSeq: call.lastSeq } }, outcome, written: true };
}

/** Grants a running request what it must hold, and what it asks ahead. */
export function renew(
  world: World,
  call: { fence: number; must: number; ahead: number },
  guards: Guards,
): { world: World; outcome: WriteOutcome } {
  const { request } = world;
  if (request.state !== 'running' || request.fence !== call.fence) return { world, outcome: 'superseded' };
  return {
    world: raiseHold(world, call.must, call.ahead, guards.grantWithinBalance),
    outcome: request.cancelled ? 'cancelled' : 'ok',
  };
}

/** `cost` undefined: the request ended without text and nothing is charged. `overdraft`: how far a charge may go. */
export function finish(
  world: World,
  call: { requestId: string; fence: number; lastSeq: number; cost: number | undefined; overdraft?: number },
  guards: Guards,
): { world: World; outcome: 'finished' | 'refused'; ended: boolean; charged: number | undefined } {
  const { request, account } = world;
  const nothing = { world, ended: false, charged: undefined };
  if (guards.fenceAtFinish && request.fence !== call.fence) return { ...nothing, outcome: 'refused' };
  // Sent again after a lost answer: it has happened.
  if (guards.oneEnd && request.state === 'done') return { ...nothing, outcome: 'finished' };
  if (request.state !== 'running' && request.state !== 'done') return { ...nothing, outcome: 'refused' };
  const pending = new Map(account.pending);
  const left = balanceOf(account) - account.held + (call.overdraft ?? 0);
  const most = guards.chargeWithinBalance ? request.hold + Math.max(0, left) : Infinity;
  const charged = call.cost === undefined ? undefined : Math.min(call.cost, most);
  if (charged !== undefined) pending.set(call.requestId, charged);
  return {
    world: {
      request: { ...request, state: 'done', hold: 0, sentSeq: call.lastSeq, terminals: request.terminals + 1 },
      account: { ...account, held: account.held - request.hold, pending },
    },
    outcome: 'finished',
    ended: true,
    charged,
  };
}

/** Ends an accepted request, with `lastSeq` for its end; a running one is told to stop. */
export function cancel(world: World, lastSeq: number): World {
  const { request, account } = world;
  if (request.state === 'running') return { ...world, request: { ...request, cancelled: true } };
  if (request.state !== 'accepted') return world;
  return {
    request: { ...request, state: 'done', hold: 0, sentSeq: lastSeq, terminals: request.terminals + 1 },
    account: { ...account, held: account.held - request.hold },
  };
}

export interface Book {
  balance: number;
  version: number;
  /** Charges by request: the ledger. */
  ledger: readonly { requestId: string; cost: number }[];
}

/** One transaction of the book: what the ledger knows is left out, the balance moves by the rest. */
export function settle(book: Book, charges: readonly { requestId: string; cost: number }[], guards: Guards): Book {
  const known = new Set(book.ledger.map((entry) => entry.requestId));
  const fresh = guards.ledgerOnce ? charges.filter((charge) => !known.has(charge.requestId)) : [...charges];
  if (fresh.length === 0) return book;
  const total = fresh.reduce((sum, { cost }) => sum + cost, 0);
  return { balance: book.balance - total, version: book.version + 1, ledger: [...book.ledger, ...fresh] };
}

/** Brings a version of the book to Redis; the charges it contains are pending no more. */
export function publish(
  account: Account,
  book: Pick<Book, 'balance' | 'version'>,
  settled: readonly string[],
  guards: Guards,
): Account {
  const isNewer = !guards.versionedBook || book.version > account.version;
  const pending = new Map(account.pending);
  for (const requestId of settled) pending.delete(requestId);
  return { ...account, pending, ...(isNewer ? { book: book.balance, version: book.version } : {}) };
}
