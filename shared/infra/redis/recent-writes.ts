import { setTimeout as pause } from 'node:timers/promises';

import type { Logger } from '../logging/logger.ts';
import type { Clock } from '../../lifecycle/clock.ts';

type Write = () => Promise<unknown>;

/**
 * What a process has told Redis in its last seconds, to be told again whenever Redis is back: it may have come back without
 * its last second (docs/architecture/facts.md section 3).
 */
export interface RecentWrites {
  /** `write` has been done, or has failed; it is safe to repeat. */
  note(write: Write): void;
  /** Repeats them, the latest first: Redis has surely lost those, if any. One that fails is tried again for a while. */
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
/** A server that has just become the master may refuse writes until it has a replica. */
const PAUSE_MS = 500;
const TRIES = 60;

export function createRecentWrites({ hasReconnectedRecently, clock, log }: RecentWritesDeps): RecentWrites {
  const kept: { at: number; write: Write }[] = [];

  /** Returns those that failed. */
  async function failing(writes: readonly Write[]): Promise<Write[]> {
    const failed: Write[] = [];
    for (let from = 0; from < writes.length; from += AT_ONCE) {
      const slice = writes.slice(from, from + AT_ONCE);
      const results = await Promise.allSettled(slice.map((write) => write()));
      failed.push(...slice.filter((_write, at) => results[at]?.status === 'rejected'));
    }
    return failed;
  }

  return {
    note(write) {
      const now = clock.now();
      kept.push({ at: now, write });
      // Nothing is too old while Redis is away: it needs the last seconds before it went.
      const oldest = hasReconnectedRecently() ? -Infinity : now - KEPT_MS;
      while (kept.length > KEPT_MAX || (kept[0]?.at ?? now) < oldest) kept.shift();
    },
    async repeatAll() {
      let left = kept.map(({ write }) => write).reverse();
      for (let tries = 1; tries <= TRIES; tries += 1) {
        left = await failing(left);
        if (left.length === 0) return;
        await pause(PAUSE_MS, undefined, { ref: false });
      }
      log.warn(`${left.length} writes that Redis may have lost could not be repeated; its next return tries again.`);
    },
  };
}
