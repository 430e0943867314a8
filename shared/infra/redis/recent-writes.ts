import type { Logger } from '../logging/logger.ts';
import type { Clock } from '../../lifecycle/clock.ts';

/**
 * What a process has told Redis in its last seconds, to be told again whenever Redis is back: it may have come back without
 * its last second (docs/architecture/facts.md section 3).
 */
export interface RecentWrites {
  /** `write` has been done, or has failed; it is safe to repeat. */
  note(write: () => Promise<unknown>): void;
  /** Repeats them, the latest first: Redis has surely lost those, if any. */
  repeatAll(): Promise<void>;
}

export interface RecentWritesDeps {
  /** Redis, or one master of a cluster, is away or was a moment ago. */
  hasReconnectedRecently: () => boolean;
  clock: Clock;
  log: Logger;
}

/** As for the ends of requests (workers/settlement/finish-journal.ts). */
const KEPT_MS = 10_000;
const KEPT_MAX = 5_000;
const AT_ONCE = 100;

export function createRecentWrites({ hasReconnectedRecently, clock, log }: RecentWritesDeps): RecentWrites {
  const kept: { at: number; write: () => Promise<unknown> }[] = [];
  return {
    note(write) {
      const now = clock.now();
      kept.push({ at: now, write });
      // Nothing is too old while Redis is away: it needs the last seconds before it went.
      const oldest = hasReconnectedRecently() ? -Infinity : now - KEPT_MS;
      while (kept.length > KEPT_MAX || (kept[0]?.at ?? now) < oldest) kept.shift();
    },
    async repeatAll() {
      try {
        const newestFirst = kept.toReversed();
        for (let from = 0; from < newestFirst.length; from += AT_ONCE)
          await Promise.all(newestFirst.slice(from, from + AT_ONCE).map(({ write }) => write()));
      } catch (error) {
        log.warn('What Redis may have lost could not be written again; its next return tries again.', { error });
      }
    },
  };
}
