import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import { BATCH_STATUSES } from '../../../contracts/batches.ts';
import type { BatchStatus, BatchWait } from '../../../contracts/batches.ts';
import type { KeyMode, SearchedSpace, Space } from '../../../contracts/space.ts';
import type { EndedAnswer } from '../../../contracts/stored-answer.ts';
import type { ListQuery } from '../../../contracts/list-page.ts';
import type { OutageCode } from '../../../domain/requests/outage.ts';
import type { ErrorDetail } from '../../../errors/error-body.ts';
import { collection, count, number, options, required, text } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import { listRows } from '../list-rows.ts';
import { inSpace } from '../spaces.ts';
import type { RowOfSpace } from '../spaces.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';

/** Times are milliseconds since the epoch. */
export interface BatchRow {
  _id: string;
  tenantId: string;
  shard: number;
  /** The key whose limits its lines take from. */
  keyId: string;
  mode: KeyMode;
  status: BatchStatus;
  metadataJson?: string;
  /** Lines; 0 until all of them have arrived. */
  total: number;
  /** Of its valid lines as they are stored; absent until they have arrived. */
  bytes?: number;
  completed: number;
  failed: number;
  waitingFor: BatchWait | null;
  /** The run under an `Idempotency-Key` that has started it: there is one batch of it. */
  startedUnder?: string;
  createdAt: number;
  /** What has not run by then is not run any more. */
  expiresAt: number;
  startedAt?: number;
  cancelledAt?: number;
  endedAt?: number;
  /** Its shard, while somebody has to look after it: until it has ended and that has been told. */
  openShard?: number;
  /** How often one of its lines was given up and came to wait again: no end that has not seen it counts. */
  reopened?: number;
  /** When MongoDB forgets it. */
  removeAt: Date;
}

/** Tries of a line that its provider did not answer; times are milliseconds since the epoch. */
export interface LineRetry {
  tries: number;
  /** Those that are the line's own fault: others were answered meanwhile. */
  faults: number;
  failedAt: number;
  /** When the next one is due. */
  dueAt: number;
}

/** `_id` is the batch's id and the line's number, so that a line that is written twice is there once. */
export interface BatchLineRow extends RowOfSpace {
  _id: string;
  batchId: string;
  /** From 0, in the order of the body. */
  index: number;
  /** Null: the line has none that can be read. */
  customId: string | null;
  requestId: string;
  entityId?: string;
  state: 'waiting' | 'completed' | 'failed';
  /** Its ChatRequest as JSON, until it has ended; with `failedAt` until its batch has. */
  requestJson?: string;
  /** How it ended, where it did not run. */
  error?: ErrorDetail;
  /** How it ended, where it ran. */
  fields?: EndedAnswer['fields'];
  entries?: EndedAnswer['entries'];
  /** It was given up in an outage, and may be tried once more while its batch runs. */
  failedAt?: number;
  failedCode?: OutageCode;
  /** While it waits: its tries so far that have failed by their provider. */
  retry?: LineRetry;
  removeAt: Date;
}

const batchSchema = new Schema<BatchRow>(
  {
    _id: required,
    tenantId: required,
    shard: count,
    keyId: required,
    mode: required,
    status: required,
    metadataJson: text,
    total: count,
    bytes: number,
    completed: count,
    failed: count,
    waitingFor: { type: String, default: null },
    startedUnder: text,
    createdAt: count,
    expiresAt: count,
    startedAt: number,
    cancelledAt: number,
    endedAt: number,
    openShard: number,
    reopened: number,
    removeAt: { type: Date, required: true },
  },
  options,
)
  .index({ tenantId: 1, createdAt: -1 })
  .index({ openShard: 1 }, { sparse: true })
  .index(
    { tenantId: 1, startedUnder: 1 },
    { unique: true, partialFilterExpression: { startedUnder: { $exists: true } } },
  )
  .index({ removeAt: 1 }, { expireAfterSeconds: 0 });

const batchLineSchema = new Schema<BatchLineRow>(
  {
    _id: required,
    tenantId: required,
    mode: text,
    batchId: required,
    index: count,
    customId: { type: String, default: null },
    requestId: required,
    entityId: text,
    state: required,
    requestJson: text,
    failedAt: number,
    failedCode: text,
    error: { type: Schema.Types.Mixed },
    fields: { type: Schema.Types.Mixed },
    retry: { type: { _id: false, tries: count, faults: count, failedAt: count, dueAt: count }, default: undefined },
    entries: { type: [{ _id: false, lastSeq: count, payload: text }], default: undefined },
    removeAt: { type: Date, required: true },
  },
  options,
)
  .index({ batchId: 1, index: 1 })
  .index({ failedAt: 1 }, { sparse: true })
  .index({ tenantId: 1, entityId: 1 })
  .index({ removeAt: 1 }, { expireAfterSeconds: 0 });

export const batchModel = collection<BatchRow>('Batch', 'batches', batchSchema);

export const batchLineModel = collection<BatchLineRow>('BatchLine', 'batch_lines', batchLineSchema);

/** What is known of a batch once all of it has arrived. */
type Arrived = Pick<BatchRow, 'total' | 'bytes' | 'failed' | 'metadataJson' | 'startedUnder'>;

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
  find(space: Space, batchId: string): Promise<BatchRow | undefined>;
  /** How many batches of a space have not ended. */
  countOpen(space: Space, shard: number): Promise<number>;
  /** What all batches of a tenant hold, ended ones included. */
  stored(tenantId: string): Promise<{ lines: number; bytes: number }>;
  /** One row more than the limit; none that broke off while it arrived. */
  list(space: Space, query: ListQuery): Promise<BatchRow[]>;
  /** Asks for a batch's end, once; one that has ended is unchanged. Undefined: unknown. */
  cancel(space: Space, batchId: string, now: number): Promise<{ batch: BatchRow; isChanged: boolean } | undefined>;
  /** Of the lines with a number above `after` and up to `after + span` those that have ended, in order. */
  results(tenantId: string, batchId: string, after: number, span: number): Promise<BatchLineRow[]>;
}

/** One whose lines never arrived whole was never said to be a batch. */
const LISTED = BATCH_STATUSES.filter((status) => status !== 'failed');

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

/** `bulk`: a connection whose calls may take longer, for what moves megabytes. */
export function createBatchRepository(connection: Connection, bulk: Connection = connection): BatchRepository {
  const batches = batchModel(connection);
  const tenants = tenantModel(connection);
  const batchLines = batchLineModel(connection);
  const bulkLines = batchLineModel(bulk);

  async function find(space: SearchedSpace, batchId: string): Promise<BatchRow | undefined> {
    return (await batches.findOne({ _id: batchId, ...inSpace(space) }).lean()) ?? undefined;
  }

  /** Null: it does not wait for lines. */
  async function letRun(tenantId: string, batchId: string, arrived: Arrived): Promise<BatchRow | null> {
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
    find,

    async insert(batch) {
      await once(batches.create({ ...batch, openShard: batch.shard }));
      // A tenant that was moved while the batch arrived takes along what is there by then; this one came later.
      const tenant = await tenants.findById(batch.tenantId, { shard: 1 }).lean();
      if (tenant === null || tenant.shard === batch.shard) return;
      const { shard } = tenant;
      await batches.updateOne({ _id: batch._id, openShard: batch.shard }, { $set: { shard, openShard: shard } });
    },

    async addLines(lines) {
      await once(bulkLines.insertMany(lines, { ordered: false, lean: true }));
    },

    async start(tenantId, batchId, arrived) {
      const { startedUnder } = arrived;
      try {
        const started = await letRun(tenantId, batchId, arrived);
        if (started !== null) return started;
      } catch (error) {
        if (startedUnder === undefined || !isDuplicateKey(error)) throw error;
        return (await batches.findOne({ tenantId, startedUnder }).lean()) ?? undefined;
      }
      // Nobody else starts it, so what has started has been started here: by a try whose answer was lost, too.
      const batch = await find({ tenantId, mode: 'any' }, batchId);
      return batch === undefined || batch.status === 'validating' || batch.status === 'failed' ? undefined : batch;
    },

    async remove(tenantId, batchId) {
      await bulkLines.deleteMany({ tenantId, batchId });
      await batches.deleteOne({ _id: batchId, tenantId });
    },

    // By the index of those who run batches, which has open ones only.
    countOpen: (space, shard) => batches.countDocuments({ openShard: shard, ...inSpace(space) }),

    async stored(tenantId) {
      const [sum] = await batchModel(bulk).aggregate<{ lines: number; bytes: number }>([
        { $match: { tenantId } },
        { $group: { _id: null, lines: { $sum: '$total' }, bytes: { $sum: '$bytes' } } },
      ]);
      return sum ?? { lines: 0, bytes: 0 };
    },

    list: (space, query) => listRows(batches, { ...inSpace(space), status: { $in: LISTED } }, query),

    async cancel(space, batchId, now) {
      const wanted = { _id: batchId, ...inSpace(space) };
      // The one whose lines arrive first: if it starts in between, `start` finds what is asked for.
      const arriving = await batches.updateOne(
        { ...wanted, status: 'validating', cancelledAt: { $exists: false } },
        { $set: { cancelledAt: now } },
      );
      const running = await batches.updateOne(
        { ...wanted, status: 'in_progress' },
        { $set: { status: 'cancelling', cancelledAt: now } },
      );
      const batch = await find(space, batchId);
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
