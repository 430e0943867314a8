import { Schema } from 'mongoose';
import type { Connection, Model } from 'mongoose';

import type { BatchLineRow, BatchRow } from './batch-rows.ts';
import { count, number, options, required, text } from '../schema-parts.ts';

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
    completed: count,
    failed: count,
    waitingFor: { type: String, default: null },
    createdAt: count,
    expiresAt: count,
    startedAt: number,
    startedUnder: text,
    cancelledAt: number,
    endedAt: number,
    openShard: number,
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
    batchId: required,
    index: count,
    customId: { type: String, default: null },
    requestId: required,
    entityId: text,
    state: required,
    requestJson: text,
    error: { type: Schema.Types.Mixed },
    fields: { type: Schema.Types.Mixed },
    entries: { type: [{ _id: false, lastSeq: count, payload: text }], default: undefined },
    removeAt: { type: Date, required: true },
  },
  options,
)
  .index({ batchId: 1, index: 1 })
  .index({ tenantId: 1, entityId: 1 })
  .index({ removeAt: 1 }, { expireAfterSeconds: 0 });

export interface BatchModels {
  batches: Model<BatchRow>;
  batchLines: Model<BatchLineRow>;
}

export function createBatchModels(connection: Connection): BatchModels {
  return {
    batches: connection.model<BatchRow>('Batch', batchSchema, 'batches'),
    batchLines: connection.model<BatchLineRow>('BatchLine', batchLineSchema, 'batch_lines'),
  };
}
