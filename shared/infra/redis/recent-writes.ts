import { setTimeout as pause } from 'node:timers/promises';

import type { LogFields, Logger } from '../logging/logger.ts';
import type { Clock } from '../../lifecycle/clock.ts';
import { isBadKey } from './scripts.ts';

type Write = () => Promise<unknown>;

/**
 * What a process has written to Redis in its last seconds, to be written again whenever Redis is back: it may have come back
 * without its last second (docs/architecture/facts.md section 3).
 */
export interface RecentWrites {
  /**
   * Remembers a write that has been done, or has failed, and that is safe to repeat. `about`: for the log, if it cannot be
   * repeated.
   */
  note(write: Write, about: LogFields): void;
  /** Remembers a write as `note` does, also if it fails, and does it. Rejects as it does. */
  perform<Result>(write: () => Promise<Result>, about: LogFields): Promise<Result>;
  /**
   * Repeats them, the latest first: Redis has surely lost those, if any. One that fails is tried again for a while. If Redis
   * comes back once more meanwhile, all are repeated again; a write is never under way twice.
   */
  repeatAll(): Promise<void>;
}

export interface RecentWritesDeps {
  /** Redis, or one master of a cluster, is away or was a moment ago. */
  hasReconnectedRecently: () => boolean;
  clock: Clock;
  log: Logger;
}

/** With AOF `everysec` a power cut loses about a second; a failover to a replica as much as it lagged behind. */
const KEPT_MS = 10_000;
/** Enough for 500 ends of requests a second. Bounded, because they hold the texts of answers. */
const KEPT_MAX = 5_000;
/**
 * One after the other would take a way to Redis and back each, and thousands of those take longer than workers wait before
 * they run anything again (REPLAYED_MS in workers/pipeline/claim.ts).
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

export function createRecentWrites({ hasReconnectedRecently, clock, log }: RecentWritesDeps): RecentWrites {
  let kept: Kept[] = [];
  let first = 0;
  /** What is left to be repeated, the latest last. Until then it does not grow old. */
  let due: Kept[] = [];
  let returns = 0;
  const runners = new Set<Promise<void>>();

  /**
   * Drops old ones, but none for its age while Redis is away: it needs those of the last seconds before it went. (On a
   * cluster the other masters go on meanwhile.)
   */
  function dropOlder(now: number): void {
    const oldest = hasReconnectedRecently() ? -Infinity : now - KEPT_MS;
    while (first < kept.length && (kept.length - first > KEPT_MAX || (kept[first]?.at ?? now) < oldest)) first += 1;
    if (first * 2 < kept.length) return;
    kept = kept.slice(first);
    first = 0;
  }

  function keep(write: Write, about: LogFields): void {
    const now = clock.now();
    kept.push({ at: now, write, about });
    dropOlder(now);
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
    note: keep,

    perform(write, about) {
      keep(write, about);
      return write();
    },

    async repeatAll() {
      returns += 1;
      due = [...due, ...kept.slice(first)];
      kept = [];
      first = 0;
      while (due.length > 0 && runners.size < AT_ONCE) {
        const runner: Promise<void> = repeatDue().finally(() => runners.delete(runner));
        runners.add(runner);
      }
      await Promise.all(runners);
    },
  };
}
