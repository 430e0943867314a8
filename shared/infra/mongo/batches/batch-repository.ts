import type { ListQuery } from '../../../contracts/list-page.ts';
import type { BatchLineRow, BatchRow } from './batch-rows.ts';
import { isDuplicateKey } from '../connection.ts';
import { listRows } from '../list-rows.ts';
import type { Models } from '../models.ts';

/** What is known of a batch once all of it has arrived. */
export type Arrived = Pick<BatchRow, 'total' | 'failed' | 'metadataJson' | 'startedUnder'>;

/** Batches as their tenant sees them; batch-work-repository.ts is the side of those who run them. */
export interface BatchRepository {
  /** From then on those who run batches look after it. Safe to repeat, like `addLines`. */
  insert(batch: Omit<BatchRow, 'openShard'>): Promise<void>;
  addLines(lines: readonly BatchLineRow[]): Promise<void>;
  /**
   * All lines have arrived: the batch may run, or ends if that was asked for. Undefined: it does not wait for lines.
   * Another batch: it was started under the same `startedUnder` before, and this one is not.
   */
  start(tenantId: string, batchId: string, arrived: Arrived): Promise<BatchRow | undefined>;
  /** Takes a batch and its lines away as if they had never been. */
  remove(tenantId: string, batchId: string): Promise<void>;
  find(tenantId: string, batchId: string): Promise<BatchRow | undefined>;
  /** How many batches of a tenant have not ended. */
  countOpen(tenantId: string, shard: number): Promise<number>;
  /** One row more than the limit. */
  list(tenantId: string, query: ListQuery): Promise<BatchRow[]>;
  /** Asks for a batch's end, once; one that has ended is unchanged. Undefined: unknown. */
  cancel(tenantId: string, batchId: string, now: number): Promise<{ batch: BatchRow; isChanged: boolean } | undefined>;
  /** Of the lines with a number above `after` and up to `after + span` those that have ended, in order. */
  results(tenantId: string, batchId: string, after: number, span: number): Promise<BatchLineRow[]>;
}

/** `_id` of a line: safe to write twice. */
export function batchLineId(batchId: string, index: number): string {
  return `${batchId}:${String(index).padStart(5, '0')}`;
}

/** The ids are nobody else's: what is there already was written by a try whose answer was lost. */
async function once(insert: Promise<unknown>): Promise<void> {
  try {
    await insert;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}

/** `bulk`: the same models over a connection that may take longer, for what moves megabytes. */
export function createBatchRepository(
  { batches, batchLines }: Pick<Models, 'batches' | 'batchLines'>,
  bulk: Pick<Models, 'batchLines'> = { batchLines },
): BatchRepository {
  async function find(tenantId: string, batchId: string): Promise<BatchRow | undefined> {
    return (await batches.findOne({ _id: batchId, tenantId }).lean()) ?? undefined;
  }

  async function letRun(tenantId: string, batchId: string, arrived: Arrived): Promise<void> {
    const arriving = { _id: batchId, tenantId, status: 'validating' } as const;
    const running = await batches.updateOne(
      { ...arriving, cancelledAt: { $exists: false } },
      { $set: { ...arrived, status: 'in_progress' } },
    );
    if (running.modifiedCount === 0) await batches.updateOne(arriving, { $set: { ...arrived, status: 'cancelling' } });
  }

  return {
    find,

    async insert(batch) {
      await once(batches.create({ ...batch, openShard: batch.shard }));
    },

    async addLines(lines) {
      await once(bulk.batchLines.insertMany(lines, { ordered: false, lean: true }));
    },

    async start(tenantId, batchId, arrived) {
      const { startedUnder } = arrived;
      try {
        await letRun(tenantId, batchId, arrived);
      } catch (error) {
        if (startedUnder === undefined || !isDuplicateKey(error)) throw error;
        return (await batches.findOne({ tenantId, startedUnder }).lean()) ?? undefined;
      }
      // Nobody else starts it, so what has started has been started here: by a try whose answer was lost, too.
      const batch = await find(tenantId, batchId);
      return batch === undefined || batch.status === 'validating' || batch.status === 'failed' ? undefined : batch;
    },

    async remove(tenantId, batchId) {
      await bulk.batchLines.deleteMany({ tenantId, batchId });
      await batches.deleteOne({ _id: batchId, tenantId });
    },

    // By the index of those who run batches, which has open ones only.
    countOpen: (tenantId, shard) => batches.countDocuments({ openShard: shard, tenantId }),

    list: (tenantId, query) => listRows(batches, { tenantId }, query),

    async cancel(tenantId, batchId, now) {
      const wanted = { _id: batchId, tenantId };
      // The one whose lines arrive first: if it starts in between, `start` finds what is asked for.
      const arriving = await batches.updateOne(
        { ...wanted, status: 'validating', cancelledAt: { $exists: false } },
        { $set: { cancelledAt: now } },
      );
      const running = await batches.updateOne(
        { ...wanted, status: 'in_progress' },
        { $set: { status: 'cancelling', cancelledAt: now } },
      );
      const batch = await find(tenantId, batchId);
      return batch && { batch, isChanged: arriving.modifiedCount + running.modifiedCount > 0 };
    },

    results: (tenantId, batchId, after, span) =>
      batchLines
        .find(
          { tenantId, batchId, index: { $gt: after, $lte: after + span }, state: { $in: ['completed', 'failed'] } },
          { requestJson: 0 },
        )
        .sort({ index: 1 })
        .lean(),
  };
}
