/**
 * The life of a request and its money as pure transitions: the rules that the Lua scripts of shared/infra/redis/lua
 * carry out. Nothing at run time calls this module; tests explore it under every interleaving of crashes, lost answers
 * and double deliveries, and compare the scripts with it step by step.
 */
export interface Request {
  state: 'absent' | 'accepted' | 'running' | 'done' | 'void';
  /** The highest attempt that has claimed the request. */
  fence: number;
  /** The call that made the claim, so that the same call sent twice is not two claims. */
  owner: string;
  /** Number of the last event in the stream. */
  sentSeq: number;
  /** Micro-credits held. */
  hold: number;
  cancelled: boolean;
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
  /** Only a higher attempt may claim. */
  fenceAtClaim: boolean;
  /** Only the attempt that holds the fence may append. */
  fenceAtAppend: boolean;
  /** Only the attempt that holds the fence may finish. */
  fenceAtFinish: boolean;
  /** An ended request takes no second end. */
  oneEnd: boolean;
  /** A batch that was sent again is not written again. */
  appendOnce: boolean;
  /** An attempt that finds text of another does not generate again. */
  endInterrupted: boolean;
  /** The ledger refuses a request it knows. */
  ledgerOnce: boolean;
  /** Only a higher version of the book replaces a lower one. */
  versionedBook: boolean;
  /** A void is for an accepted request only. */
  voidAcceptedOnly: boolean;
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
};

export const NO_REQUEST: Request = {
  state: 'absent',
  fence: 0,
  owner: '',
  sentSeq: 0,
  hold: 0,
  cancelled: false,
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

export type AdmitOutcome = 'admitted' | 'void' | 'credits' | 'credits_in_flight';

/** The one request that a balance always admits holds no more than the balance. */
export function admit(world: World, estimate: number): { world: World; outcome: AdmitOutcome } {
  const { request, account } = world;
  if (request.state === 'accepted') return { world, outcome: 'admitted' };
  if (request.state !== 'absent') return { world, outcome: 'void' };
  const balance = balanceOf(account);
  if (balance <= 0) return { world, outcome: 'credits' };
  if (account.held > 0 && balance - account.held < estimate) return { world, outcome: 'credits_in_flight' };
  const hold = Math.min(estimate, balance);
  return {
    world: {
      request: { ...request, state: 'accepted', hold },
      account: { ...account, held: account.held + hold },
    },
    outcome: 'admitted',
  };
}

/** Takes an admission back; `told`: whoever reads hears of it. Returns the state that was found. */
export function takeBack(world: World, guards: Guards, told = false): { world: World; outcome: Request['state'] } {
  const { request, account } = world;
  const { state } = request;
  if (guards.voidAcceptedOnly && state !== 'accepted' && state !== 'absent') return { world, outcome: state };
  const end = told && state !== 'absent' ? { sentSeq: 1, terminals: request.terminals + 1 } : {};
  return {
    world: {
      request: { ...request, ...end, state: 'void', hold: 0 },
      account: { ...account, held: account.held - request.hold },
    },
    outcome: state,
  };
}

export interface ClaimCall {
  attempt: number;
  owner: string;
}

export function claim(
  world: World,
  { attempt, owner }: ClaimCall,
  guards: Guards,
): { world: World; outcome: 'run' | 'drop' } {
  const { request } = world;
  const isOpen = request.state === 'accepted' || request.state === 'running';
  const isStale = request.fence >= attempt && request.owner !== owner;
  if (!isOpen || (guards.fenceAtClaim && isStale)) return { world, outcome: 'drop' };
  return { world: { ...world, request: { ...request, state: 'running', fence: attempt, owner } }, outcome: 'run' };
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

/** Raises the hold to what is needed; `used`: what a request has really used so far. */
export function renew(
  world: World,
  call: { fence: number; needed: number; used: number },
): { world: World; outcome: WriteOutcome | 'exhausted' } {
  const { request, account } = world;
  if (request.state !== 'running' || request.fence !== call.fence) return { world, outcome: 'superseded' };
  const wanted = Math.max(0, call.needed - request.hold);
  const granted = Math.min(wanted, Math.max(0, balanceOf(account) - account.held));
  const hold = request.hold + granted;
  const isExhausted = granted < wanted && call.used >= hold;
  return {
    world: { request: { ...request, hold }, account: { ...account, held: account.held + granted } },
    outcome: request.cancelled ? 'cancelled' : isExhausted ? 'exhausted' : 'ok',
  };
}

/** `cost` undefined: the request ended without text and nothing is charged. */
export function finish(
  world: World,
  call: { requestId: string; fence: number; lastSeq: number; cost: number | undefined },
  guards: Guards,
): { world: World; outcome: 'finished' | 'refused'; ended: boolean } {
  const { request, account } = world;
  if (guards.fenceAtFinish && request.fence !== call.fence) return { world, outcome: 'refused', ended: false };
  // Sent again after a lost answer: it has happened.
  if (guards.oneEnd && request.state === 'done') return { world, outcome: 'finished', ended: false };
  if (request.state !== 'running' && request.state !== 'done') return { world, outcome: 'refused', ended: false };
  const pending = new Map(account.pending);
  if (call.cost !== undefined) pending.set(call.requestId, call.cost);
  return {
    world: {
      request: { ...request, state: 'done', hold: 0, sentSeq: call.lastSeq, terminals: request.terminals + 1 },
      account: { ...account, held: account.held - request.hold, pending },
    },
    outcome: 'finished',
    ended: true,
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
