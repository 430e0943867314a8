/**
 * The return of Redis: the one place that knows when Redis has been away, and what follows when it is back.
 *
 * "Back" is one event: a connection that is ready again, an answer after three seconds without any, or a server that
 * takes writes again (scripts.ts). On a cluster each slot has its own: it has a master again that answers, or another
 * one than before. A Redis that is back may lack its last second, or everything; scripts are atomic in the append-only
 * file, so whole steps are lost and never half of one (docs/decisions/0007-redis-data-loss.md). Then
 *
 * 1. **every process says its last seconds again**, the latest first (`createReplayLog`). Registered by `note` are the
 *    ends of requests (shared/requests/finish-request.ts), cancellations (shared/requests/record-store.ts), admissions
 *    taken back (shared/requests/enqueue.ts), lines and batches that were ended (workers/batches), and on an ingress
 *    published books and ends of sessions (api/open-stores.ts);
 * 2. **workers renew the leases of all that they run** (`onReturn` in workers/compose.ts). A write that finds less than
 *    its delivery has sent repairs that first: the table of shared/requests/rollback.ts says what is done for each state
 *    found;
 * 3. **nobody takes anything over for 5 s** (`hasReconnectedRecently`), so that living workers come first: claims, the
 *    sweep, batches, canaries and requests without readers wait;
 * 4. **the sweep brings back from MongoDB** what no living process knows (shared/requests/recovery.ts).
 *
 * A process that starts then has seen no outage. It asks each shard since when its server has its data (`meet`), and
 * waits like the others. A worker that alone was cut off from a server that lives puts nothing back: nothing is lost.
 */
import { setTimeout as pause } from 'node:timers/promises';

import { Cluster } from 'ioredis';
import type { Redis } from 'ioredis';

import { repeat } from '../lifecycle/clock.ts';
import type { Clock, Repeating } from '../lifecycle/clock.ts';
import type { Closer } from '../lifecycle/closer.ts';
import type { LogFields, Logger } from '../logging/logger.ts';
import { mastersBySlot, nameOf, slotOf } from './cluster-slots.ts';
import type { RedisClient } from './connection.ts';
import type { Keyspace } from './keyspace.ts';
import { defineScript, isBadKey, isRefusing, onTaken } from './scripts.ts';
import { inTime } from './time-limits.ts';

/** Always true where no shard is named. */
type IsBack = (shard: number | undefined) => boolean;

/** More than a renewal interval of leases: by then every living worker has renewed (workers/pipeline/claim.ts). */
const BACK_MS = 5_000;
/** By then every process has said again what Redis missed. */
const REMEMBERED_MS = 30_000;
const MEET_AGAIN_MS = 1_000;

/** The data of a shard's server, as far as this process knows. */
interface Incarnation {
  /** When its server came back, or got its data (`performance.now`); Infinity while that is not known. */
  since: number;
  /** For how long it was away before that. */
  awayMs: number;
}

const isRecent = ({ since }: Incarnation, withinMs: number) => performance.now() - since < withinMs;

function createIncarnations() {
  const incarnations = new Map<number | undefined, Incarnation>();
  /** The latest return, for shards that are asked about only later. */
  let latest: (Incarnation & { isBack: IsBack }) | undefined;
  return {
    incarnationOf(shard: number | undefined): Incarnation {
      const known = incarnations.get(shard);
      if (known !== undefined) return known;
      const { since, awayMs } = latest?.isBack(shard) === true ? latest : { since: -Infinity, awayMs: 0 };
      const incarnation = { since, awayMs };
      incarnations.set(shard, incarnation);
      return incarnation;
    },
    /** The shards' servers are back. */
    renew(isBack: IsBack, awayMs: number): void {
      const since = performance.now();
      latest = { since, awayMs, isBack };
      for (const [shard, incarnation] of incarnations) {
        if (!isBack(shard)) continue;
        // It may have come back to refuse what it was sent: it was away twice.
        const beforeMs = isRecent(incarnation, REMEMBERED_MS) ? incarnation.awayMs : 0;
        Object.assign(incarnation, { since, awayMs: beforeMs + awayMs });
      }
    },
  };
}

export type RedisReturn = ReturnType<typeof watchReturn>;

/**
 * Knows when Redis is or was away. On a cluster each shard has its own outages, those of the master of its slot; where no
 * shard is named, any of them counts. `client` is connected already. An outage before that is known of shards that were met.
 */
export function watchReturn(client: RedisClient, keyspace: Keyspace) {
  const { incarnationOf, renew } = createIncarnations();
  const met = new Set<number>();
  const listeners: ((isBack: IsBack) => void)[] = [];
  const readAge = defineScript(client, 'incarnation');
  let isStopped = false;

  const slotOfShard = (shard: number) => slotOf(keyspace.shard(shard).tag);

  async function meet(shard: number): Promise<void> {
    const incarnation = incarnationOf(shard);
    const { since } = incarnation;
    const keys = keyspace.shard(shard);
    if (!met.has(shard)) incarnation.since = Infinity;
    met.add(shard);
    while (!isStopped) {
      try {
        const bornAt = performance.now() - Number(await readAge([keys.incarnation, keys.inflight], []));
        incarnation.since = Math.max(bornAt, incarnation.since === Infinity ? since : incarnation.since);
        return;
      } catch {
        // A server that is away, or takes no writes, is asked again.
        await pause(MEET_AGAIN_MS, undefined, { ref: false });
      }
    }
  }

  /** `slots` undefined: all of them. */
  function announce(slots: ReadonlySet<number> | undefined, awayMs: number): void {
    const isBack: IsBack = (shard) => shard === undefined || slots === undefined || slots.has(slotOfShard(shard));
    renew(isBack, Math.ceil(awayMs));
    for (const listener of listeners) listener(isBack);
    // It may be another server, and who starts from now on has to know since when.
    for (const shard of met) if (isBack(shard)) void meet(shard);
  }

  const outage = client instanceof Cluster ? watchMasters(client, announce) : watchConnection(client, announce);
  // Leases and locks run out while a server refuses writes, as they do while it is away.
  onTaken(client, (slot, refusedMs) => {
    announce(client instanceof Cluster ? new Set([slot]) : undefined, refusedMs);
  });

  function isAway(shard: number | undefined): boolean {
    const slot = shard === undefined || !(client instanceof Cluster) ? undefined : slotOfShard(shard);
    return outage.isAway(slot) || isRefusing(client, slot);
  }

  return {
    /** Whether Redis came back a moment ago, or is away. So it is with a shard that this process has only just met. */
    hasReconnectedRecently: (shard: number | undefined, withinMs = BACK_MS): boolean =>
      isAway(shard) || isRecent(incarnationOf(shard), withinMs),

    /** For how long Redis was away before it came back, within the last half minute; else 0. Milliseconds, rounded up. */
    lastAwayMs(shard: number): number {
      const incarnation = incarnationOf(shard);
      return isRecent(incarnation, REMEMBERED_MS) ? incarnation.awayMs : 0;
    },

    /**
     * Asks a shard for how long its server has had its data. Resolves once the answer is there; until then the shard counts
     * as back just now.
     */
    meet,

    /** Called whenever Redis is back, with what tells for which shards: it may have lost their last writes. */
    onReturn: (listener: (isBack: IsBack) => void) => listeners.push(listener),

    stop(): void {
      isStopped = true;
      outage.stop();
    },
  };
}

const LOOK_EVERY_MS = 250;
/** A master that is away for longer may stay away, and its cluster is asked less often. */
const LONG_MS = 30_000;
const LOOK_SELDOM_MS = 1_000;
const ANSWER_MS = 1_000;

/**
 * A cluster client stays `ready` while one of its masters is replaced or gone, and the slots of the other masters go on. A slot
 * is away from the moment at which the connection to its master ends, or at which it has another master, and back when its
 * master answers. `onBack` hears of slots that are back, and for how long they were away at the most.
 */
function watchMasters(cluster: Cluster, onBack: (slots: ReadonlySet<number>, awayMs: number) => void) {
  /** The state at the latest refresh: between two, a redirection changes what the client says of other slots, too. */
  let masters = mastersBySlot(cluster);
  /** When each slot that is away lost its master. */
  const goneAt = new Map<number, number>();
  let looking: Repeating | undefined;
  let isStopped = false;

  const masterOf = (slot: number) => masters[slot] ?? '';

  function begin(isGone: (master: string, slot: number) => boolean): void {
    if (isStopped) return;
    const now = performance.now();
    masters.forEach((master, slot) => {
      if (isGone(master, slot) && !goneAt.has(slot)) goneAt.set(slot, now);
    });
    if (goneAt.size > 0) looking ??= repeat(look, pauseMs, () => undefined);
  }

  /** The shortest outage decides: a master that was lost just then is about to be replaced. */
  function pauseMs(): number {
    const latest = [...goneAt.values()].reduce((one, other) => Math.max(one, other), 0);
    return performance.now() - latest > LONG_MS ? LOOK_SELDOM_MS : LOOK_EVERY_MS;
  }

  async function isMaster(name: string): Promise<boolean> {
    const node = cluster.nodes('master').find((each) => nameOf(each) === name);
    const info = await inTime(node?.info('replication') ?? Promise.resolve(''), ANSWER_MS).catch(() => '');
    return info.includes('role:master');
  }

  async function look(): Promise<void> {
    const names = new Set([...goneAt.keys()].map(masterOf));
    const answers = await Promise.all([...names].map(async (name) => ((await isMaster(name)) ? [name] : [])));
    const living = new Set(cluster.status === 'ready' ? answers.flat() : []);
    if (isStopped) return;
    const back = [...goneAt].filter(([slot]) => living.has(masterOf(slot)));
    for (const [slot] of back) goneAt.delete(slot);
    const firstAt = back.reduce((first, [, at]) => Math.min(first, at), Infinity);
    if (back.length > 0) onBack(new Set(back.map(([slot]) => slot)), performance.now() - firstAt);
    if (goneAt.size > 0) cluster.refreshSlotsCache();
    else stopLooking();
  }

  function stopLooking(): void {
    void looking?.stop();
    looking = undefined;
  }

  cluster.on('-node', (node: Redis) => {
    if (node.options.readOnly !== true) begin((master) => master === nameOf(node));
  });
  cluster.on('refresh', () => {
    const before = masters;
    masters = mastersBySlot(cluster);
    begin((master, slot) => before[slot] !== undefined && before[slot] !== master);
  });
  return {
    /** Whether a slot, or any of them, has no master that answers. */
    isAway: (slot: number | undefined): boolean =>
      cluster.status !== 'ready' || (slot === undefined ? goneAt.size > 0 : goneAt.has(slot)),
    stop(): void {
      isStopped = true;
      stopLooking();
    },
  };
}

/** A single server is asked this often, and is away when it has not answered this many times in a row. */
const ASK_EVERY_MS = 1_000;
const UNANSWERED_MAX = 3;

/**
 * A server that hangs closes nothing: it is away once it has answered nothing for a while. Nobody could renew a lease
 * meanwhile, as if its connections had broken.
 */
function watchConnection(client: Redis, announce: (slots: undefined, awayMs: number) => void) {
  let isAsking = false;
  /** Counted, not timed: a process that slept itself has missed no answer. */
  let unanswered = 0;

  function answered(isReturn: boolean): void {
    const missed = unanswered;
    unanswered = 0;
    if (isReturn || missed >= UNANSWERED_MAX) announce(undefined, (missed + 1) * ASK_EVERY_MS);
  }

  async function ask(): Promise<void> {
    if (isAsking) {
      unanswered += 1;
      return;
    }
    isAsking = true;
    try {
      await client.ping();
      answered(false);
    } catch {
      unanswered += 1;
    }
    isAsking = false;
  }

  client.on('ready', () => {
    answered(true);
  });
  const asking = setInterval(() => void ask(), ASK_EVERY_MS);
  asking.unref();
  return {
    isAway: () => client.status !== 'ready' || unanswered >= UNANSWERED_MAX,
    stop() {
      clearInterval(asking);
    },
  };
}

/** With AOF `everysec` a power cut loses about a second; a failover to a replica as much as it lagged behind. */
const KEPT_MS = 10_000;
/** Enough for 500 ends of requests a second. Bounded, because they hold the texts of answers. */
const KEPT_MAX = 5_000;
/**
 * One after the other would take a way to Redis and back each, and thousands of those take longer than workers wait before
 * they run anything again (REPLAYED_MS in workers/pipeline/claim.ts). The shards share this number.
 */
const AT_ONCE = 100;
/** A server that has just become the master may refuse writes until it has a replica. */
const PAUSE_MS = 500;
const TRIES = 60;

interface Kept {
  at: number;
  write: () => Promise<unknown>;
  about: LogFields;
}

/**
 * The writes of one shard. Each has its own list, as one master of a cluster may stay away: what waits for it must keep no
 * write of the others waiting, and is not pushed out by theirs.
 */
interface ShardLog {
  /** Counts the returns of the shard's Redis. */
  incarnation: number;
  kept: Kept[];
  /** Writes that are left to be repeated, the latest last. Until then it does not grow old. */
  due: Kept[];
  runners: Set<Promise<void>>;
}

export interface ReplayLogDeps {
  hasReconnectedRecently: (shard: number | undefined) => boolean;
  clock: Clock;
  log: Logger;
}

export type ReplayLog = ReturnType<typeof createReplayLog>;

/** Until it is done, since the latest return of Redis, or cannot be. */
async function repeatOne(own: ShardLog, { write, about }: Kept, log: Logger): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const { incarnation } = own;
    try {
      await write();
      if (incarnation === own.incarnation) return;
    } catch (error) {
      if (tries === TRIES || isBadKey(error)) {
        log.error('What Redis may have lost could not be repeated; its next return tries again.', { ...about, error });
        return;
      }
      await pause(PAUSE_MS, undefined, { ref: false });
    }
    if (incarnation !== own.incarnation) tries = 0;
  }
}

/**
 * The writes of a process in its last seconds, to be said again whenever Redis is back. `about` names the shard whose keys a
 * write changes, where it is one's, and the rest for the log, if it cannot be repeated.
 */
export function createReplayLog({ hasReconnectedRecently, clock, log }: ReplayLogDeps) {
  const shards = new Map<number | undefined, ShardLog>();

  /** No write is dropped for its age while Redis is away: it needs those of the last seconds before it went. */
  function dropOlder(now: number): void {
    for (const [shard, { kept }] of shards) {
      const isOld = ({ at }: Kept) => at < now - KEPT_MS && !hasReconnectedRecently(shard);
      while (kept[0] !== undefined && (kept.length > KEPT_MAX || isOld(kept[0]))) kept.shift();
    }
  }

  /** Remembers a write that has been done, or has failed, and that is safe to repeat. */
  function note(write: Kept['write'], about: LogFields): void {
    const now = clock.now();
    const own = shards.get(about.shard) ?? { incarnation: 0, kept: [], due: [], runners: new Set() };
    shards.set(about.shard, own);
    own.kept.push({ at: now, write, about });
    dropOlder(now);
  }

  async function repeatDue(own: ShardLog): Promise<void> {
    for (let next = own.due.pop(); next !== undefined; next = own.due.pop()) {
      await repeatOne(own, next, log);
      // Redis may lose it once more.
      own.kept.push({ ...next, at: clock.now() });
    }
  }

  async function repeatShard(own: ShardLog): Promise<void> {
    own.incarnation += 1;
    own.due.push(...own.kept.splice(0));
    while (own.due.length > 0 && own.runners.size < Math.ceil(AT_ONCE / shards.size)) {
      const runner: Promise<void> = repeatDue(own).finally(() => own.runners.delete(runner));
      own.runners.add(runner);
    }
    await Promise.all(own.runners);
  }

  return {
    note,

    /** Remembers a write, also if it fails, and does it. Rejects as it does. */
    perform<Result>(write: () => Promise<Result>, about: LogFields): Promise<Result> {
      note(write, about);
      return write();
    },

    /**
     * Repeats those of the shards that are back, the latest first: Redis has surely lost those, if any. One that fails is
     * tried again for a while. If Redis comes back once more meanwhile, all are repeated again; a write is never under way
     * twice.
     */
    async replay(isBack: IsBack = () => true): Promise<void> {
      await Promise.all([...shards].map(async ([shard, own]) => isBack(shard) && repeatShard(own)));
    },
  };
}

/** Watches a client, and says again what Redis may have lost whenever it is back. */
export function openRedisReturn(
  redis: RedisClient,
  keyspace: Keyspace,
  { clock, log, closer }: { clock: Clock; log: Logger; closer: Closer },
) {
  const { stop, ...watch } = watchReturn(redis, keyspace);
  closer.defer('outage watch', stop);
  const replayLog = createReplayLog({ ...watch, clock, log });
  watch.onReturn((isBack) => void replayLog.replay(isBack));
  return { ...watch, replayLog };
}
