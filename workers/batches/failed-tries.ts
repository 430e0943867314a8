import { LOST } from '../../shared/contracts/events.ts';
import type { BatchRow } from '../../shared/infra/mongo/batches/batch-repository.ts';
import type { RecentWrites } from '../../shared/infra/redis/recent-writes.ts';
import type { AdmissionStore } from '../../shared/infra/redis/requests/admission-store.ts';

interface FailedTriesDeps {
  admissions: Pick<AdmissionStore, 'disown'>;
  recentWrites: Pick<RecentWrites, 'note'>;
}

type TriedBatch = Pick<BatchRow, '_id' | 'shard' | 'tenantId' | 'keyId'>;

/**
 * Keeps tries of lines ended that have failed without text: the line is tried again under another id, or its result says that
 * it failed. Redis may come back without the end of such a try, and its worker, which would say it again, may have died: it
 * would run a second time and be charged beside the line's next try (docs/decisions/0016-batches.md).
 */
export interface FailedTries {
  /** Has this process say again that the try has ended, whenever Redis comes back within the next seconds. */
  note(batch: TriedBatch, requestId: string): void;
  /** Ends the try if Redis does not know that it has ended. Nobody pays for it. Safe to repeat. */
  end(batch: TriedBatch, requestId: string): Promise<void>;
}

export function createFailedTries({ admissions, recentWrites }: FailedTriesDeps): FailedTries {
  async function end({ shard, tenantId, keyId }: TriedBatch, requestId: string): Promise<void> {
    // A try of which Redis knows nothing cannot run, so it needs no tombstone.
    await admissions.disown(requestId, { shard, tenantId, keyId }, LOST, true);
  }

  return {
    end,
    note(batch, requestId) {
      const { _id: batchId, shard, tenantId } = batch;
      recentWrites.note(() => end(batch, requestId), { shard, requestId, tenantId, batchId });
    },
  };
}
