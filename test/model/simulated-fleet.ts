import {
  NO_REQUEST,
  admit,
  append,
  cancel,
  claim,
  finish,
  join,
  publish,
  renew,
  settle,
  voidLater,
} from './lifecycle.ts';
import type { Book, Guards, World } from './lifecycle.ts';

/**
 * One request among an ingress, three deliveries of its job, a sweep, two settlement leaders and a grant. Every step of any of
 * them is one choice; a choice may also crash an actor or lose the answer to its command, which is then sent again.
 */
export const GRANT = 60;
/** Held by other requests all the time: the balance does not pay for the whole answer. */
export const HELD_BY_OTHERS = 45;
export const HOLD = 10;
export const COST_PER_CHUNK = 7;
const CHUNKS = 3;
/** By so much the provider's count at the end is above ours. */
export const COUNTED_MORE = 12;
export const OVERDRAFT = 3;
export const GRANTED_LATER = 5;
const DELIVERIES = 3;
const REQUEST_ID = 'req_1';

interface Delivery {
  /** Two deliveries may have the same number; their calls never have the same name. */
  name: string;
  number: number;
  step: 'claim' | 'write' | 'finish' | 'over';
  written: number;
  /** Text it found in the stream when it claimed the request. */
  found: number;
  cancelled: boolean;
}

interface Settler {
  step: 'read' | 'commit' | 'publish' | 'acknowledge';
  batch: { requestId: string; cost: number }[];
  result: Pick<Book, 'balance' | 'version'>;
}

interface Granting {
  step: 'commit' | 'publish' | 'over';
  result: Pick<Book, 'balance' | 'version'>;
}

export interface Fleet {
  world: World;
  book: Book;
  outbox: { requestId: string; cost: number }[];
  deliveries: Delivery[];
  settlers: Settler[];
  enqueued: boolean;
  /** Batches in the order of the stream, with the delivery that wrote each. */
  stream: { delivery: string; lastSeq: number }[];
  grant: Granting;
  /** What the request would cost if there were enough for it. */
  owed: number;
  /** A call has got 202 for the request. */
  promised: boolean;
}

export const ACTORS = [
  'enqueue',
  'voidLater',
  'join',
  'first',
  'second',
  'twin',
  'sweep',
  'cancel',
  'settler',
  'otherSettler',
  'grant',
] as const;
export type Actor = (typeof ACTORS)[number];
/** `providerFailed`: the delivery gives up and ends the request with what it has. */
export type Fault = 'none' | 'crash' | 'lostAnswer' | 'providerFailed';

function newDelivery(number: number, name = `delivery ${number}`): Delivery {
  return { name, number, step: 'claim', written: 0, found: 0, cancelled: false };
}

function newSettler(): Settler {
  return { step: 'read', batch: [], result: { balance: 0, version: 0 } };
}

export function createFleet(): Fleet {
  const account = { book: GRANT, version: 1, pending: new Map<string, number>(), held: HELD_BY_OTHERS };
  const { world } = admit({ request: NO_REQUEST, account }, HOLD, CHUNKS * COST_PER_CHUNK);
  return {
    world,
    book: { balance: GRANT, version: 1, ledger: [] },
    outbox: [],
    deliveries: [newDelivery(1), newDelivery(2), newDelivery(1, 'twin of delivery 1')],
    settlers: [newSettler(), newSettler()],
    enqueued: false,
    stream: [],
    grant: { step: 'commit', result: { balance: 0, version: 0 } },
    owed: 0,
    promised: false,
  };
}

function stepClaim(fleet: Fleet, delivery: Delivery, guards: Guards, fault: Fault): void {
  const found = fleet.world.request.sentSeq;
  const { world, outcome } = claim(fleet.world, { fence: delivery.number, owner: delivery.name }, guards);
  fleet.world = world;
  if (fault === 'lostAnswer') return;
  delivery.found = found;
  delivery.step = outcome === 'drop' ? 'over' : found > 0 && guards.endInterrupted ? 'finish' : 'write';
}

/** Whether the text up to here may be released: what is held covers it, or a renewal does. */
function isGranted(fleet: Fleet, delivery: Delivery, cost: number, guards: Guards): boolean {
  if (!guards.gateOnGrant) return true;
  const { world, outcome } = renew(fleet.world, { fence: delivery.number, must: cost, ahead: 2 * cost }, guards);
  fleet.world = world;
  // A superseded delivery learns so from its append.
  return outcome === 'superseded' || world.request.hold >= cost;
}

function stepWrite(fleet: Fleet, delivery: Delivery, guards: Guards, fault: Fault): void {
  if (fault === 'providerFailed') {
    delivery.step = 'finish';
    return;
  }
  const lastSeq = delivery.written + 1;
  if (!isGranted(fleet, delivery, lastSeq * COST_PER_CHUNK, guards)) {
    delivery.step = 'finish';
    return;
  }
  const { world, outcome, written } = append(fleet.world, { fence: delivery.number, lastSeq }, guards);
  fleet.world = world;
  if (written) fleet.stream.push({ delivery: delivery.name, lastSeq });
  if (fault === 'lostAnswer') return;
  delivery.written = lastSeq;
  delivery.cancelled = outcome === 'cancelled';
  if (outcome === 'superseded') delivery.step = 'over';
  else if (delivery.cancelled || delivery.written === CHUNKS) delivery.step = 'finish';
}

function stepFinish(fleet: Fleet, delivery: Delivery, guards: Guards, fault: Fault): void {
  // What this delivery knows of, as a worker does: another one's text after its claim is not among it.
  const text = delivery.found + delivery.written;
  const cost = text === 0 ? undefined : text * COST_PER_CHUNK + COUNTED_MORE;
  const call = { requestId: REQUEST_ID, fence: delivery.number, lastSeq: text + 2, cost, overdraft: OVERDRAFT };
  const { world, ended, charged } = finish(fleet.world, call, guards);
  fleet.world = world;
  if (ended && charged !== undefined) {
    fleet.outbox.push({ requestId: REQUEST_ID, cost: charged });
    fleet.owed = cost ?? 0;
  }
  if (fault !== 'lostAnswer') delivery.step = 'over';
}

function stepDelivery(fleet: Fleet, delivery: Delivery, guards: Guards, fault: Fault): void {
  if (delivery.step === 'over') return;
  if (fault === 'crash') {
    delivery.step = 'over';
    return;
  }
  if (delivery.step === 'claim') stepClaim(fleet, delivery, guards, fault);
  else if (delivery.step === 'write') stepWrite(fleet, delivery, guards, fault);
  else stepFinish(fleet, delivery, guards, fault);
}

/** A lease that has run out: another delivery, above whatever has the fence. */
function stepSweep(fleet: Fleet): void {
  const { state, fence } = fleet.world.request;
  if (state !== 'accepted' && state !== 'running') return;
  fleet.deliveries.push(newDelivery(fence + 1, `sweep ${fleet.deliveries.length}`));
}

function stepSettler(fleet: Fleet, settler: Settler, guards: Guards, fault: Fault): void {
  if (fault === 'crash') {
    Object.assign(settler, newSettler());
    return;
  }
  switch (settler.step) {
    case 'read':
      settler.batch = [...fleet.outbox];
      if (settler.batch.length > 0) settler.step = 'commit';
      return;
    case 'commit':
      fleet.book = settle(fleet.book, settler.batch, guards);
      settler.result = { balance: fleet.book.balance, version: fleet.book.version };
      if (fault !== 'lostAnswer') settler.step = 'publish';
      return;
    case 'publish':
      fleet.world = {
        ...fleet.world,
        account: publish(
          fleet.world.account,
          settler.result,
          settler.batch.map(({ requestId }) => requestId),
          guards,
        ),
      };
      if (fault !== 'lostAnswer') settler.step = 'acknowledge';
      return;
    case 'acknowledge':
      fleet.outbox = fleet.outbox.filter((entry) => !settler.batch.includes(entry));
      Object.assign(settler, newSettler());
  }
}

/** A grant while everything runs: another writer of the book, whose publication may come late. */
function stepGrant(fleet: Fleet, guards: Guards): void {
  const { grant } = fleet;
  if (grant.step === 'commit') {
    fleet.book = { ...fleet.book, balance: fleet.book.balance + GRANTED_LATER, version: fleet.book.version + 1 };
    grant.result = { balance: fleet.book.balance, version: fleet.book.version };
    grant.step = 'publish';
  } else if (grant.step === 'publish') {
    fleet.world = { ...fleet.world, account: publish(fleet.world.account, grant.result, [], guards) };
    grant.step = 'over';
  }
}

function stepEnqueue(fleet: Fleet, fault: Fault): void {
  if (fault !== 'crash') fleet.enqueued = true;
}

export function step(fleet: Fleet, actor: Actor, fault: Fault, guards: Guards): void {
  const [first, second, twin] = fleet.deliveries;
  const [settler, otherSettler] = fleet.settlers;
  switch (actor) {
    case 'enqueue':
      stepEnqueue(fleet, fault);
      return;
    case 'voidLater':
      // An ingress whose enqueue got no answer takes its admission back.
      fleet.world = voidLater(fleet.world, guards).world;
      return;
    case 'join': {
      const { world, promised } = join(fleet.world);
      fleet.world = world;
      fleet.promised ||= promised;
      return;
    }
    case 'first':
      if (fleet.enqueued && first !== undefined) stepDelivery(fleet, first, guards, fault);
      return;
    case 'second':
      if (fleet.enqueued && second !== undefined) stepDelivery(fleet, second, guards, fault);
      return;
    case 'twin':
      if (fleet.enqueued && twin !== undefined) stepDelivery(fleet, twin, guards, fault);
      return;
    case 'grant':
      stepGrant(fleet, guards);
      return;
    case 'sweep': {
      const latest = fleet.deliveries.at(-1);
      if (fleet.deliveries.length > DELIVERIES && latest !== undefined && latest.step !== 'over')
        stepDelivery(fleet, latest, guards, fault);
      else stepSweep(fleet);
      return;
    }
    case 'cancel':
      fleet.world = cancel(fleet.world, 2);
      return;
    case 'settler':
      if (settler !== undefined) stepSettler(fleet, settler, guards, fault);
      return;
    case 'otherSettler':
      if (otherSettler !== undefined) stepSettler(fleet, otherSettler, guards, fault);
  }
}

/** Lets everything that can still happen happen, without faults: the sweep ends what nobody else does. */
export function comeToRest(fleet: Fleet, guards: Guards): void {
  fleet.enqueued = true;
  for (let round = 0; round < 40; round += 1) {
    for (const delivery of [...fleet.deliveries]) stepDelivery(fleet, delivery, guards, 'none');
    if (fleet.deliveries.every(({ step: at }) => at === 'over')) stepSweep(fleet);
    for (const settler of fleet.settlers) stepSettler(fleet, settler, guards, 'none');
  }
  // The grant's publication is the latest of all, as one that hung in the network.
  stepGrant(fleet, guards);
  stepGrant(fleet, guards);
}
