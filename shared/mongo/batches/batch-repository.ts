import type { Connection, Model } from 'mongoose';

import { BATCH_LIMITS, BATCH_STATUSES } from '../../contracts/batches.ts';
import type { BatchStatus, BatchWait } from '../../contracts/batches.ts';
import type { KeyMode, SearchedSpace, Space } from '../../contracts/space.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { collection, insertOnce, listRows, inSpace } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';
import { ANSWERS_BYTES, batchLineModel, bytesOfEntries } from './batch-lines.ts';
import type { BatchLineRow } from './batch-lines.ts';

/** Times are milliseconds since the epoch. */
export interface BatchRow {
  _id: string;
  tenantId: string;
  shard: number;
  /** This key submitted the batch, and its limits count the lines. */
  keyId: string;
  mode: KeyMode;
  status: BatchStatus;
  metadataJson?: string;
  total: number;
  /** Stored bytes of its valid lines; absent until all lines have arrived. */
  bytes?: number;
  completed: number;
  failed: number;
  waitingFor: BatchWait | null;
  /** The run under an `Idempotency-Key`. A unique index keeps a run from starting two batches. */
  startedUnder?: string;
  createdAt: number;
  /** Lines that have not run by then fail. */
  expiresAt: number;
  startedAt?: number;
  cancelledAt?: number;
  endedAt?: number;
  /** Set while the shard's leader has work with the batch: until its end has been published. */
  openShard?: number;
  /**
   * Counts failed lines that were set waiting again. Whoever ends the batch names the count it saw; a rise since then
   * refuses the end, because a line waits.
   */
  reopened?: number;
  removeAt: Date;
}

export const batchModel = collection<BatchRow>('batches', [
  [{ tenantId: 1, createdAt: -1 }],
  [{ openShard: 1 }, { sparse: true }],
  [
    { tenantId: 1, startedUnder: 1 },
    { unique: true, partialFilterExpression: { startedUnder: { $exists: true } } },
  ],
  [{ removeAt: 1 }, { expireAfterSeconds: 0 }],
]);

const RESULTS_AT_ONCE = 5;

/** Set when the last line has arrived. */
type Arrived = Pick<BatchRow, 'total' | 'bytes' | 'failed' | 'metadataJson' | 'startedUnder'>;

/** The tenant's side; batch-work-repository.ts is the workers'. */
export type BatchRepository = ReturnType<typeof createBatchRepository>;

/** `failed` is a batch whose upload broke off: its caller was never told its id. */
const LISTED = BATCH_STATUSES.filter((status) => status !== 'failed');

const { linesMax, bytesMax } = BATCH_LIMITS;
const orMost = (field: string, most: number) => ({ $cond: [{ $eq: ['$status', 'validating'] }, most, field] });

/** Covers batches from the first byte of their upload until they run. */
function createBatchUploads(connection: Connection, bulk: Connection) {
  const batches = batchModel(connection);
  const tenants = tenantModel(connection);
  const bulkLines = batchLineModel(bulk);

  async function setRunning(tenantId: string, batchId: string, arrived: Arrived): Promise<BatchRow | null> {
    const arriving = { _id: batchId, tenantId, status: 'validating' } as const;
    const after = { returnDocument: 'after' } as const;
    const running = await batches
      .findOneAndUpdate(
        { ...arriving, cancelledAt: { $exists: false } },
        { $set: { ...arrived, status: 'in_progress' } },
        after,
      )
      .lean();
    if (running !== null) return running;
    return batches.findOneAndUpdate(arriving, { $set: { ...arrived, status: 'cancelling' } }, after).lean();
  }

  return {
    /**
     * Stores a batch before its lines arrive; its shard's leader removes it if they do not. Returns its shard, another
     * one than the batch says where the tenant has moved since. Safe to repeat.
     */
    async insert(batch: Omit<BatchRow, 'openShard'>): Promise<number> {
      await insertOnce(batches.create({ ...batch, openShard: batch.shard } satisfies BatchRow));
      // A move takes a tenant's batches along; one stored just after the move follows here.
      const tenant = await tenants.findById(batch.tenantId, { shard: 1 }).lean();
      if (tenant === null || tenant.shard === batch.shard) return batch.shard;
      const { shard } = tenant;
      await batches.updateOne({ _id: batch._id, openShard: batch.shard }, { $set: { shard, openShard: shard } });
      return shard;
    },

    /** Safe to repeat. */
    async addLines(lines: readonly BatchLineRow[]): Promise<void> {
      await insertOnce(bulkLines.insertMany(lines, { ordered: false, lean: true }));
    },

    /**
     * Sets a batch with all its lines running, or ending if it was cancelled meanwhile. Undefined: it is not arriving
     * any more. Returns an earlier batch with the same `startedUnder` instead of starting this one.
     */
    async start(tenantId: string, batchId: string, arrived: Arrived): Promise<BatchRow | undefined> {
      const { startedUnder } = arrived;
      try {
        const started = await setRunning(tenantId, batchId, arrived);
        if (started !== null) return started;
      } catch (error) {
        if (startedUnder === undefined || !isDuplicateKey(error)) throw error;
        return (await batches.findOne({ tenantId, startedUnder }).lean()) ?? undefined;
      }
      // Only this upload starts it: this call, or an earlier try whose answer was lost.
      const batch = await batches.findOne({ _id: batchId, tenantId }).lean();
      return batch === null || batch.status === 'validating' || batch.status === 'failed' ? undefined : batch;
    },

    /** Fails a batch of which no line was sent, so that nobody runs it. False: a line was sent. Safe to repeat. */
    async failUnstarted(tenantId: string, batchId: string): Promise<boolean> {
      const { matchedCount } = await batches.updateOne(
        { _id: batchId, tenantId, startedAt: { $exists: false } },
        { $set: { status: 'failed' }, $unset: { openShard: 1 } },
      );
      return matchedCount === 1 || (await batches.countDocuments({ _id: batchId, tenantId })) === 0;
    },

    /** Removes a batch whose upload failed, and its lines. Safe to repeat. */
    async remove(tenantId: string, batchId: string): Promise<void> {
      await bulkLines.deleteMany({ tenantId, batchId });
      await batches.deleteOne({ _id: batchId, tenantId });
    },
  };
}

async function sumStored(bulk: Connection, tenantId: string): Promise<{ lines: number; bytes: number }> {
  const [sum] = await batchModel(bulk).aggregate<{ lines: number; bytes: number }>([
    { $match: { tenantId } },
    { $group: { _id: null, lines: { $sum: orMost('$total', linesMax) }, bytes: { $sum: orMost('$bytes', bytesMax) } } },
  ]);
  return sum ?? { lines: 0, bytes: 0 };
}

/** Returns whether it changed the batch. */
async function markCancelled(batches: Model<BatchRow>, space: Space, batchId: string, now: number): Promise<boolean> {
  const wanted = { _id: batchId, ...inSpace(space) };
  // An arriving batch comes first: if it starts between the two updates, `start` has seen `cancelledAt`.
  const arriving = await batches.updateOne(
    { ...wanted, status: 'validating', cancelledAt: { $exists: false } },
    { $set: { cancelledAt: now } },
  );
  const running = await batches.updateOne(
    { ...wanted, status: 'in_progress' },
    { $set: { status: 'cancelling', cancelledAt: now } },
  );
  return arriving.modifiedCount + running.modifiedCount > 0;
}

async function readResults(
  batchLines: Model<BatchLineRow>,
  within: { tenantId: string; batchId: string; index: { $gt: number; $lte: number } },
): Promise<{ lines: BatchLineRow[]; last: number }> {
  const cursor = batchLines
    .find({ ...within, state: { $in: ['completed', 'failed'] } }, { requestJson: 0 })
    .sort({ index: 1 })
    .lean()
    .cursor({ batchSize: RESULTS_AT_ONCE });
  const lines: BatchLineRow[] = [];
  let bytes = 0;
  for await (const line of cursor) {
    lines.push(line);
    bytes += bytesOfEntries(line.entries);
    if (bytes < ANSWERS_BYTES) continue;
    await cursor.close();
    return { lines, last: line.index };
  }
  return { lines, last: within.index.$lte };
}

/** `bulk` has a longer call timeout, for calls that move megabytes. */
export function createBatchRepository(connection: Connection, bulk: Connection = connection) {
  const batches = batchModel(connection);
  const batchLines = batchLineModel(connection);

  async function find(space: SearchedSpace, batchId: string): Promise<BatchRow | undefined> {
    return (await batches.findOne({ _id: batchId, ...inSpace(space) }).lean()) ?? undefined;
  }

  return {
    ...createBatchUploads(connection, bulk),
    find,

    // The sparse index of `openShard` holds open batches only.
    countOpen: (space: Space, shard: number): Promise<number> =>
      batches.countDocuments({ openShard: shard, ...inSpace(space) }),

    /** Sums what all batches of a tenant hold, ended ones included; one that is arriving counts as the largest. */
    stored: (tenantId: string): Promise<{ lines: number; bytes: number }> => sumStored(bulk, tenantId),

    /** One row more than the limit; omits batches whose upload failed. */
    list: (space: Space, query: ListQuery): Promise<BatchRow[]> =>
      listRows(batches, { ...inSpace(space), status: { $in: LISTED } }, query),

    /** An ended batch stays as it is. Safe to repeat. Undefined: unknown. */
    async cancel(space: Space, batchId: string, now: number) {
      const isChanged = await markCancelled(batches, space, batchId, now);
      const batch = await find(space, batchId);
      return batch && { batch, isChanged };
    },

    /** Ended lines after `after` and up to `last`, in order. Large answers end it before `after + span`. */
    results: (tenantId: string, batchId: string, after: number, span: number) =>
      readResults(batchLines, { tenantId, batchId, index: { $gt: after, $lte: after + span } }),
  };
}
