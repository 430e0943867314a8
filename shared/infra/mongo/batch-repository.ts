import type { ListQuery } from '../../contracts/list-page.ts';
import type { BatchLineRow, BatchRow } from './batch-rows.ts';
import { listRows } from './list-rows.ts';
import type { Models } from './models.ts';

/** Batches as their tenant sees them; batch-work-repository.ts is the side of those who run them. */
export interface BatchRepository {
  /** From then on those who run batches look after it. */
  insert(batch: Omit<BatchRow, 'openShard'>): Promise<void>;
  addLines(lines: readonly BatchLineRow[]): Promise<void>;
  /** All lines have arrived: the batch may run. Undefined: it is not there any more, or runs already. */
  start(tenantId: string, batchId: string, counts: Pick<BatchRow, 'total' | 'failed'>): Promise<BatchRow | undefined>;
  /** Takes a batch and its lines away as if they had never been. */
  remove(tenantId: string, batchId: string): Promise<void>;
  find(tenantId: string, batchId: string): Promise<BatchRow | undefined>;
  /** One row more than the limit. */
  list(tenantId: string, query: ListQuery): Promise<BatchRow[]>;
  /** Asks for a running batch's end; one that has ended is unchanged. Undefined: unknown. */
  cancel(tenantId: string, batchId: string, now: number): Promise<BatchRow | undefined>;
  /** The lines with a number above `after` and up to `after + span`, in order; those that wait have no result. */
  lines(tenantId: string, batchId: string, after: number, span: number): Promise<BatchLineRow[]>;
}

/** `_id` of a line: safe to write twice. */
export function batchLineId(batchId: string, index: number): string {
  return `${batchId}:${String(index).padStart(5, '0')}`;
}

export function createBatchRepository({
  batches,
  batchLines,
}: Pick<Models, 'batches' | 'batchLines'>): BatchRepository {
  async function find(tenantId: string, batchId: string): Promise<BatchRow | undefined> {
    return (await batches.findOne({ _id: batchId, tenantId }).lean()) ?? undefined;
  }

  return {
    find,

    async insert(batch) {
      await batches.create({ ...batch, openShard: batch.shard });
    },

    async addLines(lines) {
      await batchLines.insertMany(lines, { ordered: false, lean: true });
    },

    async start(tenantId, batchId, counts) {
      const { modifiedCount } = await batches.updateOne(
        { _id: batchId, tenantId, status: 'validating' },
        { $set: { ...counts, status: 'in_progress' } },
      );
      return modifiedCount === 1 ? find(tenantId, batchId) : undefined;
    },

    async remove(tenantId, batchId) {
      await batchLines.deleteMany({ tenantId, batchId });
      await batches.deleteOne({ _id: batchId, tenantId });
    },

    list: (tenantId, query) => listRows(batches, { tenantId }, query),

    async cancel(tenantId, batchId, now) {
      await batches.updateOne(
        { _id: batchId, tenantId, status: 'in_progress' },
        { $set: { status: 'cancelling', cancelledAt: now } },
      );
      return find(tenantId, batchId);
    },

    lines: (tenantId, batchId, after, span) =>
      batchLines
        .find({ tenantId, batchId, index: { $gt: after, $lte: after + span } })
        .sort({ index: 1 })
        .lean(),
  };
}
