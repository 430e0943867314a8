import type { Logger } from '../../shared/infra/logging/logger.ts';
import { isBadDocument } from '../../shared/infra/mongo/mongo-faults.ts';
import { isBadKey } from '../../shared/infra/redis/scripts.ts';
import { rewind } from './open-batch.ts';
import type { OpenBatch } from './open-batch.ts';

/** What a leader knows about its shard. Times come from `performance.now`, which is never set back. */
export interface ShardBatches {
  open: Map<string, OpenBatch>;
  /** Batches with an error of their own, and until when they rest. */
  resting: Map<string, number>;
  /** When the rows of the shard's batches were last read. */
  readAt: number;
}

/** The time of something that has not happened yet, or is to happen again at once. */
export const NEVER = -Infinity;
/** How long a batch rests after an error of its own. */
const REST_MS = 5_000;

export function emptyShard(): ShardBatches {
  return { open: new Map(), resting: new Map(), readAt: NEVER };
}

export function isResting({ resting }: ShardBatches, batchId: string): boolean {
  return (resting.get(batchId) ?? NEVER) > performance.now();
}

/** Whether the error is due to the batch's own stored data, not to the store. */
function isOwnFault(error: unknown): boolean {
  const isUnreadable = error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError;
  return isUnreadable || isBadKey(error) || isBadDocument(error);
}

/** Acts on one batch, unless the batch is resting. Rejects if a store fails. */
export type DoForBatch = (shard: ShardBatches, batchId: string, act: () => Promise<void>) => Promise<void>;

/** An error of its own makes a batch rest and does not stop the others. */
export function createDoForBatch(log: Logger): DoForBatch {
  return async (shard, batchId, act) => {
    if (isResting(shard, batchId)) return;
    try {
      await act();
    } catch (error) {
      if (!isOwnFault(error)) throw error;
      log.error('A batch cannot go on; it is tried again shortly.', { batchId, error });
      shard.resting.set(batchId, performance.now() + REST_MS);
      const batch = shard.open.get(batchId);
      if (batch !== undefined) rewind(batch);
    }
  };
}
