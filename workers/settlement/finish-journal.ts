import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { RecentWrites } from '../../shared/infra/redis/recent-writes.ts';
import type { RequestStore } from '../../shared/infra/redis/requests/request-store.ts';
import type { DeliveryRef, Ending } from '../../shared/infra/redis/requests/running-request.ts';

export interface FinishJournal {
  /** Ends a request, and keeps its end for the next seconds. */
  finish: RequestStore['finish'];
}

export interface FinishJournalDeps {
  requests: Pick<RequestStore, 'finish' | 'replayFinish'>;
  recentWrites: Pick<RecentWrites, 'note'>;
  /** Erases a request that was put back, with its end or before it, if its entity or tenant has been deleted meanwhile. */
  eraseDeleted: (ref: DeliveryRef) => Promise<void>;
  log: Logger;
}

/**
 * Keeps the ends of the last seconds in memory. Redis may come back without them (docs/architecture/facts.md section 3): then
 * a request would run again, or its charge would be lost.
 */
export function createFinishJournal({ requests, recentWrites, eraseDeleted, log }: FinishJournalDeps): FinishJournal {
  /** Not waited for: MongoDB may be away, and others must find what has ended before they run it again. */
  function eraseIfDeleted(ref: DeliveryRef): void {
    const { requestId, tenantId } = ref;
    eraseDeleted(ref).catch((error: unknown) => {
      log.warn('Whether a request that was put back has been deleted is not known.', { requestId, tenantId, error });
    });
  }

  async function replay(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<void> {
    if ((await requests.replayFinish(ref, sentSeq, ending)) !== 'replayed') return;
    const { requestId, tenantId } = ref;
    log.warn('Redis had lost that a request was finished; its end was replayed.', { requestId, tenantId });
    eraseIfDeleted(ref);
  }

  return {
    async finish(ref, sentSeq, ending) {
      const finished = await requests.finish(ref, sentSeq, ending);
      const { shard, requestId, tenantId } = ref;
      // Without the body, which may be large, and which nobody needs any more.
      const kept = { ...ref, envelope: undefined };
      // Even without a charge: otherwise the request could run again although its caller was told that it failed.
      if (finished && ref.wasPutBack === true) eraseIfDeleted(ref);
      if (finished) recentWrites.note(() => replay(kept, sentSeq, ending), { shard, requestId, tenantId });
      return finished;
    },
  };
}
