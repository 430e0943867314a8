/**
 * One request, for which a 202 was given, in a Redis that comes back without its last writes, perhaps without the request,
 * while its workers and its reader live. Beside the rules of lifecycle.ts this has what they say again
 * (docs/decisions/0007-redis-data-loss.md). Nothing at run time calls it.
 */
const CHUNKS = 3;

interface Entry {
  seq: number;
  writer: string;
}

/** What Redis has of the request. A rollback brings an earlier one back. */
interface Stored {
  state: 'missing' | 'accepted' | 'running' | 'done';
  owner: string;
  /** The number of the delivery that has it. */
  fence: number;
  sent: number;
  stream: readonly Entry[];
  charges: number;
}

interface Worker {
  name: string;
  /** The number of its own delivery. */
  fence: number;
  phase: 'idle' | 'writing' | 'ended' | 'over' | 'dead';
  /** Events that Redis has acknowledged. */
  written: number;
  /** It has said again what it runs or has ended. */
  hasSpoken: boolean;
  /** Its process has started since Redis came back, so it has seen no outage. */
  isFresh: boolean;
}

export interface RollbackFleet {
  redis: Stored;
  /** The states that a rollback may go back to. */
  history: Stored[];
  workers: [Worker, Worker];
  generations: number;
  /** A second generation could not be helped: its reader may be told of an error. */
  isLate: boolean;
  reader: { writer: string | undefined; seen: Entry[]; end: 'none' | 'whole' | 'error' };
}

/** What protects the promises; a test removes each in turn and must then find a broken promise. */
export interface RollbackGuards {
  /** A write is of the claim that Redis knows, not only of its number. */
  comparesOwner: boolean;
  /** A write names the event that it follows, and lost text is sent again. */
  followsEvent: boolean;
  /** A worker claims again what is accepted once more. */
  claimsAgain: boolean;
  /** So does one that had taken the request over, where the claim of the delivery before it has come back. */
  claimsLater: boolean;
  /** Ends are repeated after a reconnect. */
  replaysEnds: boolean;
  /** A new delivery waits until the others have said what they run and what they ended. */
  waitsForOthers: boolean;
  /** So does one that has just started, as the server tells since when it has its data. */
  asksServer: boolean;
  /** A worker puts back what Redis has lost altogether. */
  restores: boolean;
  /** Whoever leads takes what Redis has lost from MongoDB, which has every request with a 202. */
  recovers: boolean;
  /** A reader ends with an error where another writer's text follows. */
  comparesWriters: boolean;
}

export const ROLLBACK_GUARDS: RollbackGuards = {
  comparesOwner: true,
  followsEvent: true,
  claimsAgain: true,
  claimsLater: true,
  replaysEnds: true,
  waitsForOthers: true,
  asksServer: true,
  restores: true,
  recovers: true,
  comparesWriters: true,
};

/**
 * `late`: the second worker takes a delivery while the first has not spoken for longer than anybody waits. `death`: the first
 * worker dies before it has sent text, and the second one takes over. `start`: the process of the second one, which has had
 * no delivery, is started anew.
 */
export const ROLLBACK_ACTORS = ['first', 'second', 'late', 'death', 'start', 'reader', 'rollback'] as const;
export type RollbackActor = (typeof ROLLBACK_ACTORS)[number];

export function createRollbackFleet(): RollbackFleet {
  const worker = (name: string): Worker => ({
    name,
    fence: 1,
    phase: 'idle',
    written: 0,
    hasSpoken: true,
    isFresh: false,
  });
  const before = { state: 'missing', owner: '', fence: 0, sent: 0, stream: [], charges: 0 } as const;
  return {
    redis: { ...before, state: 'accepted' },
    history: [before],
    workers: [worker('first'), worker('second')],
    generations: 0,
    isLate: false,
    reader: { writer: undefined, seen: [], end: 'none' },
  };
}

function owns({ redis }: RollbackFleet, { name }: Worker, guards: RollbackGuards): boolean {
  return redis.state === 'running' && (!guards.comparesOwner || redis.owner === name);
}

/** Claims again where Redis has come back without the claim. False: the request is another worker's. */
function mayWrite(fleet: RollbackFleet, worker: Worker, guards: RollbackGuards): boolean {
  const { state, fence } = fleet.redis;
  const isEarlier = state === 'running' && fence < worker.fence;
  const isGone = (state === 'accepted' && guards.claimsAgain) || (state === 'missing' && guards.restores);
  if (isGone || (isEarlier && guards.claimsLater))
    fleet.redis = { ...fleet.redis, state: 'running', owner: worker.name, fence: worker.fence };
  return owns(fleet, worker, guards);
}

function writeUpTo(fleet: RollbackFleet, { name, written }: Worker, seq: number, guards: RollbackGuards): void {
  const { redis } = fleet;
  const from = guards.followsEvent ? redis.sent : written;
  const lost = Array.from({ length: Math.max(0, seq - from) }, (_, index) => ({ seq: from + 1 + index, writer: name }));
  fleet.redis = { ...redis, sent: seq, stream: [...redis.stream, ...lost] };
}

function end(fleet: RollbackFleet, worker: Worker, guards: RollbackGuards): void {
  if (!mayWrite(fleet, worker, guards)) return;
  writeUpTo(fleet, worker, CHUNKS, guards);
  // The ledger takes the charge of a request once; here it is counted in Redis, as its outbox entry.
  fleet.redis = { ...fleet.redis, state: 'done', charges: 1 };
}

function stepWorker(fleet: RollbackFleet, worker: Worker, guards: RollbackGuards): void {
  worker.hasSpoken = true;
  switch (worker.phase) {
    case 'idle': {
      const { redis } = fleet;
      const isQuiet = fleet.workers.some((other) => !other.hasSpoken);
      const isLeft = redis.state === 'running' && fleet.workers.some(({ phase }) => phase === 'dead');
      const waits = guards.waitsForOthers && (guards.asksServer || !worker.isFresh);
      if (waits && isQuiet) return;
      if (redis.state === 'missing' && guards.recovers) fleet.redis = { ...redis, state: 'accepted' };
      if (redis.state !== 'accepted' && !isLeft) return;
      worker.fence = redis.fence + 1;
      fleet.redis = { ...redis, state: 'running', owner: worker.name, fence: worker.fence };
      fleet.generations += 1;
      worker.phase = 'writing';
      return;
    }
    case 'writing':
      if (!mayWrite(fleet, worker, guards)) worker.phase = 'over';
      else if (worker.written === CHUNKS) {
        end(fleet, worker, guards);
        worker.phase = 'ended';
      } else {
        writeUpTo(fleet, worker, worker.written + 1, guards);
        worker.written += 1;
      }
      return;
    case 'ended':
      if (guards.replaysEnds && fleet.redis.state !== 'done') end(fleet, worker, guards);
      return;
    case 'over':
    case 'dead':
  }
}

/** Its generation is lost with it. */
function die(fleet: RollbackFleet): void {
  const [first, second] = fleet.workers;
  if (first.phase !== 'writing' || first.written > 0 || second.phase !== 'idle') return;
  first.phase = 'dead';
  first.hasSpoken = true;
  fleet.generations -= 1;
}

function stepReader({ reader, redis }: RollbackFleet, guards: RollbackGuards): void {
  if (reader.end !== 'none') return;
  for (const entry of redis.stream) {
    if (entry.seq <= reader.seen.length) continue;
    if (guards.comparesWriters && reader.writer !== undefined && entry.writer !== reader.writer) {
      reader.end = 'error';
      return;
    }
    reader.writer = entry.writer;
    reader.seen.push(entry);
  }
  // The end has its writer and its number, too: it ends the answer that was begun, or none.
  if (redis.state !== 'done') return;
  const isAnothers = reader.writer !== undefined && reader.writer !== redis.owner;
  reader.end = guards.comparesWriters && isAnothers ? 'error' : 'whole';
}

function remember(fleet: RollbackFleet): void {
  fleet.history.push(fleet.redis);
}

/** `back`: how many of the last steps are lost. */
export function stepRollback(fleet: RollbackFleet, actor: RollbackActor, back: number, guards: RollbackGuards): void {
  const [first, second] = fleet.workers;
  const { generations } = fleet;
  switch (actor) {
    case 'first':
    case 'second':
      remember(fleet);
      stepWorker(fleet, actor === 'first' ? first : second, guards);
      return;
    case 'late':
      remember(fleet);
      stepWorker(fleet, second, { ...guards, waitsForOthers: false });
      fleet.isLate ||= generations > 0 && fleet.generations > generations;
      return;
    case 'death':
      die(fleet);
      return;
    case 'start':
      second.isFresh ||= second.phase === 'idle';
      return;
    case 'reader':
      stepReader(fleet, guards);
      return;
    case 'rollback': {
      const earlier = fleet.history.at(-1 - back) ?? fleet.history[0];
      if (earlier === undefined) return;
      fleet.redis = earlier;
      fleet.history = fleet.history.slice(0, fleet.history.indexOf(earlier));
      for (const worker of fleet.workers) {
        worker.hasSpoken = worker.phase !== 'writing' && worker.phase !== 'ended';
        worker.isFresh = false;
      }
    }
  }
}

/** Lets everything that can still happen happen; returns the broken promises in words. */
export function brokenByRollback(fleet: RollbackFleet, guards: RollbackGuards): string[] {
  for (let round = 0; round < 4 * CHUNKS; round += 1) {
    for (const worker of fleet.workers) stepWorker(fleet, worker, guards);
    stepReader(fleet, guards);
  }
  const { redis, reader, generations, isLate } = fleet;
  const broken: string[] = [];
  const say = (isBroken: boolean, what: string) => {
    if (isBroken) broken.push(what);
  };
  const isOneText = (entries: readonly Entry[]) =>
    entries.length === CHUNKS && new Set(entries.map(({ writer }) => writer)).size === 1;
  const isWhole = (entries: readonly Entry[]) =>
    entries.length === CHUNKS && entries.every(({ seq, writer }, index) => seq === index + 1 && writer === redis.owner);
  say(redis.state !== 'done', 'a request with a 202 never ended');
  say(redis.charges !== 1, 'text was not charged');
  say(!isWhole(redis.stream), 'the stream has a hole or two writers');
  say(reader.end === 'none', 'the reader was never told of the end');
  say(reader.end === 'whole' && !isOneText(reader.seen), 'the reader was given another text');
  say(reader.end === 'error' && !isLate, 'a reader whose worker lives was told of an error');
  say(generations > 1 && !isLate, 'the answer was generated twice although its worker lives');
  return broken;
}
