/**
 * The return of Redis: only this file knows when Redis has been away, and what follows when it is back.
 *
 * "Back" is one event: a connection that is ready again, an answer after three seconds without any, or a server that
 * takes writes again (scripts.ts). On a cluster each slot has its own: its master answers again, or it has another
 * master. Redis may then lack its last second, or everything; scripts are atomic in the append-only file, so only whole
 * steps are lost (docs/decisions/0007-redis-data-loss.md). Then
 *
 * 1. **every process repeats its last seconds**, the latest first (`createReplayLog`): ends of requests
 *    (shared/requests/finish-request.ts), cancellations (shared/requests/record-store.ts), admissions taken back
 *    (shared/requests/enqueue.ts), ended lines and batches (workers/batches), and on an ingress published books and
 *    ends of sessions (api/open-stores.ts);
 * 2. **workers renew the leases of all that they run** (`onReturn` in workers/compose.ts). A write that finds less than
 *    its delivery has sent repairs that first, by the table of shared/requests/rollback.ts;
 * 3. **nobody takes anything over for 5 s** (`hasReconnectedRecently`), so that living workers come first: claims, the
 *    sweep, batches, canaries and requests without readers wait;
 * 4. **the sweep brings back from MongoDB** what no living process knows (shared/requests/recovery.ts).
 *
 * A process that starts then has seen no outage: it asks each shard since when its server has its data (`meet`), and
 * waits like the others. A worker that alone was cut off from a living server puts nothing back: nothing is lost.
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

/** Longer than a renewal interval of leases: by then every living worker has renewed (workers/pipeline/claim.ts). */
const BACK_MS = 5_000;
/** By then every process has repeated what Redis missed. */
const REMEMBERED_MS = 30_000;
const MEET_AGAIN_MS = 1_000;

interface Incarnation {
  /** The server came back, or got its data, then (`performance.now`); Infinity while that is unknown. */
  since: number;
  awayMs: number;
}

const isRecent = ({ since }: Incarnation, withinMs: number) => performance.now() - since < withinMs;

function createIncarnations() {
  const incarnations = new Map<number | undefined, Incarnation>();
  /** For shards that are asked about only later. */
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
    renew(isBack: IsBack, awayMs: number): void {
      const since = performance.now();
      latest = { since, awayMs, isBack };
      for (const [shard, incarnation] of incarnations) {
        if (!isBack(shard)) continue;
        // It was away twice: it came back only to refuse writes.
        const beforeMs = isRecent(incarnation, REMEMBERED_MS) ? incarnation.awayMs : 0;
        Object.assign(incarnation, { since, awayMs: beforeMs + awayMs });
      }
    },
  };
}

export type RedisReturn = ReturnType<typeof watchReturn>;

/**
 * On a cluster each shard has the outages of its slot's master; where no shard is named, any counts. `client` is
 * connected already. Earlier outages are known only of shards that were met.
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
        // Asks a server again that is away, or takes no writes.
        await pause(MEET_AGAIN_MS, undefined, { ref: false });
      }
    }
  }

  function announce(slots: ReadonlySet<number> | undefined, awayMs: number): void {
    const isBack: IsBack = (shard) => shard === undefined || slots === undefined || slots.has(slotOfShard(shard));
    renew(isBack, Math.ceil(awayMs));
    for (const listener of listeners) listener(isBack);
    // Another server may have the shard: processes that start later ask it since when.
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
    /** Redis is away or came back a moment ago; so does a shard that this process has just met. */
    hasReconnectedRecently: (shard: number | undefined, withinMs = BACK_MS): boolean =>
      isAway(shard) || isRecent(incarnationOf(shard), withinMs),

    /** Milliseconds, rounded up; 0 unless Redis came back within the last half minute. */
    lastAwayMs(shard: number): number {
      const incarnation = incarnationOf(shard);
      return isRecent(incarnation, REMEMBERED_MS) ? incarnation.awayMs : 0;
    },

    /** Asks a shard since when its server has its data. Until the answer, the shard counts as just back. */
    meet,

    /** Redis may have lost the last writes of the shards that `isBack` names. */
    onReturn: (listener: (isBack: IsBack) => void) => listeners.push(listener),

    stop(): void {
      isStopped = true;
      outage.stop();
    },
  };
}

const LOOK_EVERY_MS = 250;
/** A master that is away this long may stay away, so its cluster is asked less often. */
const LONG_MS = 30_000;
const LOOK_SELDOM_MS = 1_000;
const ANSWER_MS = 1_000;

/**
 * A cluster client stays `ready` while one master is replaced or gone, and other slots go on. A slot is away from the
 * loss of its master's connection, or a change of master, until its master answers. `onBack` gets the returned slots,
 * and for how long they were away at most.
 */
function watchMasters(cluster: Cluster, onBack: (slots: ReadonlySet<number>, awayMs: number) => void) {
  /** The state of the latest refresh: in between, a redirection also changes what the client says of other slots. */
  let masters = mastersBySlot(cluster);
  /** Slots that are away, with the time of the loss. */
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

  /** The shortest outage decides: a master that was just lost is about to be replaced. */
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
    /** No slot: any of them counts. */
    isAway: (slot: number | undefined): boolean =>
      cluster.status !== 'ready' || (slot === undefined ? goneAt.size > 0 : goneAt.has(slot)),
    stop(): void {
      isStopped = true;
      stopLooking();
    },
  };
}

/** A single server is asked this often, and is away after this many missing answers in a row. */
const ASK_EVERY_MS = 1_000;
const UNANSWERED_MAX = 3;

/** A server that hangs closes nothing: it is away after a silence, in which no lease could be renewed. */
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

/** With AOF `everysec` a power cut loses about a second; a failover loses a replica's lag. */
const KEPT_MS = 10_000;
/** Enough for 500 ends of requests a second. Bounded, because they hold answers' texts. */
const KEPT_MAX = 5_000;
/**
 * For all shards together. One write at a time would need a way to Redis and back each; thousands take longer than
 * workers wait before they run anything again (REPLAYED_MS in workers/pipeline/claim.ts).
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

/** Each shard's own list: a master that stays away must not delay others' writes, nor be pushed out by them. */
interface ShardLog {
  /** Counts the returns of the shard's Redis. */
  incarnation: number;
  kept: Kept[];
  /** Left to be repeated, the latest last; until then these writes do not grow old. */
  due: Kept[];
  runners: Set<Promise<void>>;
}

export interface ReplayLogDeps {
  hasReconnectedRecently: (shard: number | undefined) => boolean;
  clock: Clock;
  log: Logger;
}

export type ReplayLog = ReturnType<typeof createReplayLog>;

/** Tries until success after the latest return of Redis, or final failure. */
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
 * A process's last writes, which it repeats whenever Redis is back. `about` names the shard of the written keys, if
 * one, and the rest for the log of a write that cannot be repeated.
 */
export function createReplayLog({ hasReconnectedRecently, clock, log }: ReplayLogDeps) {
  const shards = new Map<number | undefined, ShardLog>();

  /** Drops nothing while Redis is away: it needs the last seconds before it went. */
  function dropOlder(now: number): void {
    for (const [shard, { kept }] of shards) {
      const isOld = ({ at }: Kept) => at < now - KEPT_MS && !hasReconnectedRecently(shard);
      while (kept[0] !== undefined && (kept.length > KEPT_MAX || isOld(kept[0]))) kept.shift();
    }
  }

  /** Remembers a write that was done, or failed, and is safe to repeat. */
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
     * Repeats writes of returned shards, the latest first, because Redis lost these if any. A failing one is tried
     * again for a while. If Redis comes back once more meanwhile, all are repeated again; no write is under way twice.
     */
    async replay(isBack: IsBack = () => true): Promise<void> {
      await Promise.all([...shards].map(async ([shard, own]) => isBack(shard) && repeatShard(own)));
    },
  };
}

/** Repeats what Redis may have lost whenever the client is back. */
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
