import { setTimeout as pause } from 'node:timers/promises';

import type { LogFields, Logger } from '../logging/logger.ts';
import type { Clock } from '../lifecycle/clock.ts';
import type { IsBack } from './outages.ts';
import { isBadKey } from './scripts.ts';

type Write = () => Promise<unknown>;

/**
 * What a process has written to Redis in its last seconds, to be written again whenever Redis is back: it may have come
 * back without its last second (docs/decisions/0007-redis-data-loss.md).
 */
export interface RecentWrites {
  /**
   * Remembers a write that has been done, or has failed, and that is safe to repeat. `about`: the shard whose keys it writes,
   * where it is one's, and the rest for the log, if it cannot be repeated.
   */
  note(write: Write, about: LogFields): void;
  /** Remembers a write as `note` does, also if it fails, and does it. Rejects as it does. */
  perform<Result>(write: () => Promise<Result>, about: LogFields): Promise<Result>;
  /**
   * Repeats those of the shards that are back, the latest first: Redis has surely lost those, if any. One that fails is tried
   * again for a while. If Redis comes back once more meanwhile, all are repeated again; a write is never under way twice.
   */
  repeatAll(isBack?: IsBack): Promise<void>;
}

export interface RecentWritesDeps {
  /** Redis is away, or was a moment ago; on a cluster, the master of the shard. */
  hasReconnectedRecently: (shard: number | undefined) => boolean;
  clock: Clock;
  log: Logger;
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
  write: Write;
  about: LogFields;
}

type ShardWrites = ReturnType<typeof createShardWrites>;

interface ShardWritesDeps extends Pick<RecentWritesDeps, 'clock' | 'log'> {
  hasReconnectedRecently: () => boolean;
  atOnce: () => number;
}

/**
 * Those of one shard. Each has its own, as one master of a cluster may stay away: what waits for it must keep no write of the
 * others waiting, and is not pushed out by theirs.
 */
function createShardWrites({ hasReconnectedRecently, atOnce, clock, log }: ShardWritesDeps) {
  let kept: Kept[] = [];
  let first = 0;
  /** What is left to be repeated, the latest last. Until then it does not grow old. */
  let due: Kept[] = [];
  let returns = 0;
  const runners = new Set<Promise<void>>();

  /** No write is dropped for its age while Redis is away: it needs those of the last seconds before it went. */
  const isOver = (now: number) =>
    kept.length - first > KEPT_MAX || ((kept[first]?.at ?? now) < now - KEPT_MS && !hasReconnectedRecently());

  function dropOlder(now: number): void {
    while (isOver(now)) first += 1;
    if (first === 0 || first * 2 < kept.length) return;
    kept = kept.slice(first);
    first = 0;
  }

  function keep(write: Write, about: LogFields): void {
    kept.push({ at: clock.now(), write, about });
  }

  /** Until it is done, since the latest return of Redis, or cannot be. */
  async function repeatOne({ write, about }: Kept): Promise<void> {
    let begunAt = returns;
    for (let tries = 1; ; tries += 1) {
      try {
        await write();
        if (begunAt === returns) return;
      } catch (error) {
        if (tries === TRIES || isBadKey(error)) {
          log.error('What Redis may have lost could not be repeated; its next return tries again.', {
            ...about,
            error,
          });
          return;
        }
        await pause(PAUSE_MS, undefined, { ref: false });
      }
      if (begunAt !== returns) [begunAt, tries] = [returns, 0];
    }
  }

  async function repeatDue(): Promise<void> {
    for (let next = due.pop(); next !== undefined; next = due.pop()) {
      await repeatOne(next);
      // Redis may lose it once more.
      keep(next.write, next.about);
    }
  }

  return {
    keep,
    /** Drops those that nobody needs any more. */
    dropOlder,

    async repeatAll(): Promise<void> {
      returns += 1;
      due = [...due, ...kept.slice(first)];
      kept = [];
      first = 0;
      while (due.length > 0 && runners.size < atOnce()) {
        const runner: Promise<void> = repeatDue().finally(() => runners.delete(runner));
        runners.add(runner);
      }
      await Promise.all(runners);
    },
  };
}

export function createRecentWrites({ hasReconnectedRecently, clock, log }: RecentWritesDeps): RecentWrites {
  const shards = new Map<number | undefined, ShardWrites>();
  const atOnce = () => Math.ceil(AT_ONCE / shards.size);

  function writesOf(shard: number | undefined): ShardWrites {
    const known = shards.get(shard);
    if (known !== undefined) return known;
    const own = createShardWrites({ hasReconnectedRecently: () => hasReconnectedRecently(shard), atOnce, clock, log });
    shards.set(shard, own);
    return own;
  }

  function keep(write: Write, about: LogFields): void {
    writesOf(about.shard).keep(write, about);
    const now = clock.now();
    for (const each of shards.values()) each.dropOlder(now);
  }

  return {
    note: keep,

    perform(write, about) {
      keep(write, about);
      return write();
    },

    async repeatAll(isBack = () => true) {
      await Promise.all([...shards].map(async ([shard, writes]) => isBack(shard) && writes.repeatAll()));
    },
  };
}
