import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { AttemptRef, Ending, RequestStore } from '../../shared/infra/redis/requests/request-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

export interface FinishJournal {
  /** Ends a request and keeps its end for the next seconds. */
  finish: RequestStore['finish'];
  /** Repeats, after a reconnect, the ends that Redis may have lost. Safe to repeat. */
  replay(): Promise<void>;
}

export interface FinishJournalDeps {
  requests: Pick<RequestStore, 'finish' | 'replayFinish'>;
  /** Redis, or one master of a cluster, is away or was a moment ago. */
  hasReconnectedRecently: () => boolean;
  clock: Clock;
  log: Logger;
}

/** With AOF `everysec` a power cut loses about a second; a failover to a replica as much as it lagged behind. */
const KEPT_MS = 10_000;
/** Enough for 500 ends a second. Bounded, because the texts of the answers are kept. */
const KEPT_MAX = 5_000;

/**
 * One after the other would take a way to Redis and back each, and thousands of those take longer than the others wait
 * before they run anything again (REPLAYED_MS in pipeline/claim.ts).
 */
const REPLAYED_AT_ONCE = 100;

interface Kept {
  at: number;
  ref: AttemptRef;
  sentSeq: number;
  ending: Ending;
}

/**
 * Keeps the ends of the last seconds in memory. Redis may come back without them (docs/architecture/facts.md section 3): then
 * a request would run again, or its charge would be lost.
 */
export function createFinishJournal(deps: FinishJournalDeps): FinishJournal {
  const { requests, hasReconnectedRecently, clock, log } = deps;
  let kept: Kept[] = [];
  let first = 0;

  /**
   * Drops old ends, but none for its age while Redis is away: it needs those of the last seconds before it went. (On a cluster
   * requests go on ending on the other masters meanwhile.)
   */
  function dropOlder(now: number): void {
    const oldest = hasReconnectedRecently() ? -Infinity : now - KEPT_MS;
    while (first < kept.length && (kept.length - first > KEPT_MAX || (kept[first]?.at ?? now) < oldest)) first += 1;
    if (first * 2 < kept.length) return;
    kept = kept.slice(first);
    first = 0;
  }

  async function replayOne({ ref, sentSeq, ending }: Kept): Promise<void> {
    const { requestId, tenantId } = ref;
    try {
      if ((await requests.replayFinish(ref, sentSeq, ending)) === 'replayed')
        log.warn('Redis had lost that a request was finished; its end was replayed.', { requestId, tenantId });
    } catch (error) {
      log.error('The end of a request cannot be replayed.', { requestId, tenantId, error });
    }
  }

  return {
    async finish(ref, sentSeq, ending) {
      const finished = await requests.finish(ref, sentSeq, ending);
      const now = clock.now();
      dropOlder(now);
      // Even without a charge: otherwise the request could run again although its caller was told that it failed.
      if (finished) kept.push({ at: now, ref, sentSeq, ending });
      return finished;
    },

    async replay() {
      const newestFirst = kept.slice(first).reverse();
      for (let at = 0; at < newestFirst.length; at += REPLAYED_AT_ONCE)
        await Promise.all(newestFirst.slice(at, at + REPLAYED_AT_ONCE).map(replayOne));
    },
  };
}
