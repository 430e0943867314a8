import type { Connection } from 'mongoose';

import type { BatchStatus } from '../../../contracts/batches.ts';
import type { EndedAnswer } from '../../../contracts/stored-answer.ts';
import type { OutageCode } from '../../../domain/requests/outage.ts';
import type { ErrorDetail } from '../../../errors/error-body.ts';
import { batchLineId, batchLineModel, batchModel } from './batch-repository.ts';
import type { BatchLineRow, BatchRow } from './batch-repository.ts';

/** How a line ended: with what became of its request, or without one. */
export type LineEnd = Pick<WaitingLine, 'index' | 'requestId'> & { status: 'completed' | 'failed' } & (
    | { answer: Pick<EndedAnswer, 'fields' | 'entries'>; outage?: { code: OutageCode; at: number } | undefined }
    | { error: ErrorDetail }
  );

/** What is known of a line while it waits; its request may be of megabytes, and many lines wait at a time. */
export type WaitingLine = Pick<BatchLineRow, 'index' | 'requestId' | 'retry'>;

export type SendableLine = WaitingLine & Pick<BatchLineRow, 'requestJson'>;

export interface BatchCounts {
  completed: number;
  failed: number;
}

/** Batches as those see them who run their lines. */
export interface BatchWorkRepository {
  /** Batches of a shard that have not ended, or of whose end nobody has been told, oldest first. */
  open(shard: number): Promise<BatchRow[]>;
  /** Lines without a result whose number is above `after`, in order. */
  waiting(tenantId: string, batchId: string, after: number, limit: number): Promise<WaitingLine[]>;
  /** One of them. */
  waitingAt(tenantId: string, batchId: string, index: number): Promise<WaitingLine | undefined>;
  /** Those of the lines with these numbers that have no result yet, with their requests, in order. */
  toSend(tenantId: string, batchId: string, indexes: readonly number[]): Promise<SendableLine[]>;
  /** Notes how lines ended; returns how many still waited under that request id. Safe to repeat: a line ends once. */
  end(tenantId: string, batchId: string, ends: readonly LineEnd[]): Promise<number>;
  /** Ends every line that waits, except for those with the given numbers; returns how many there were. */
  endWaiting(tenantId: string, batchId: string, except: readonly number[], error: ErrorDetail): Promise<number>;
  /** Gives a waiting line's next try an id of its own; false: its last try is another one, or it has ended. */
  renumber(
    tenantId: string,
    batchId: string,
    last: Pick<WaitingLine, 'index' | 'requestId'>,
    next: Pick<WaitingLine, 'requestId' | 'retry'>,
  ): Promise<boolean>;
  count(tenantId: string, batchId: string): Promise<BatchCounts>;
  /** How often lines of it came to wait again; to be read before what an end is decided by. */
  reopened(tenantId: string, batchId: string): Promise<number | null>;
  /** Brings what the tenant sees up to date. */
  note(
    tenantId: string,
    batchId: string,
    state: BatchCounts & Pick<BatchRow, 'waitingFor'> & { startedAt?: number },
  ): Promise<void>;
  /** Ends it, once; it stays open until `told`. False: a line came to wait again, or its status is another one. */
  finish(
    tenantId: string,
    batchId: string,
    from: { status: BatchStatus; reopened: number | null },
    end: BatchCounts & BatchEnd,
  ): Promise<boolean>;
  /** Nobody need look after it any more. */
  told(tenantId: string, batchId: string): Promise<void>;
  /** Takes away a batch that nobody was given the id of, with its lines; one that has left `status` stays. */
  abandon(tenantId: string, batchId: string, status: BatchStatus, now: number): Promise<void>;
}

interface BatchEnd {
  status: BatchStatus;
  endedAt: number;
}

function toUpdate(tenantId: string, batchId: string, { index, requestId, status, ...end }: LineEnd) {
  const result = 'answer' in end ? { fields: end.answer.fields, entries: end.answer.entries } : { error: end.error };
  const outage = 'answer' in end ? end.outage : undefined;
  const failure = outage === undefined ? {} : { failedAt: outage.at, failedCode: outage.code };
  const unneeded =
    outage === undefined ? { requestJson: 1 as const, failedAt: 1 as const, failedCode: 1 as const } : {};
  return {
    updateOne: {
      filter: { _id: batchLineId(batchId, index), tenantId, requestId, state: 'waiting' as const },
      update: { $set: { state: status, ...result, ...failure }, $unset: { ...unneeded, retry: 1 as const } },
    },
  };
}

export function createBatchWorkRepository(connection: Connection): BatchWorkRepository {
  const batches = batchModel(connection);
  const batchLines = batchLineModel(connection);
  return {
    open: (shard) => batches.find({ openShard: shard }, { metadataJson: 0 }).sort({ createdAt: 1 }).lean(),

    waiting: (tenantId, batchId, after, limit) =>
      batchLines
        .find({ tenantId, batchId, index: { $gt: after }, state: 'waiting' }, { index: 1, requestId: 1, retry: 1 })
        .sort({ index: 1 })
        .limit(limit)
        .lean(),

    toSend: (tenantId, batchId, indexes) =>
      batchLines
        .find(
          { _id: { $in: indexes.map((index) => batchLineId(batchId, index)) }, tenantId, state: 'waiting' },
          { index: 1, requestId: 1, requestJson: 1 },
        )
        .sort({ index: 1 })
        .lean(),

    async waitingAt(tenantId, batchId, index) {
      const line = await batchLines
        .findOne({ _id: batchLineId(batchId, index), tenantId, state: 'waiting' }, { index: 1, requestId: 1, retry: 1 })
        .lean();
      return line ?? undefined;
    },

    async end(tenantId, batchId, ends) {
      const writes = ends.map((end) => toUpdate(tenantId, batchId, end));
      if (writes.length === 0) return 0;
      const { modifiedCount } = await batchLines.bulkWrite(writes, { ordered: false });
      return modifiedCount;
    },

    async endWaiting(tenantId, batchId, except, error) {
      const { modifiedCount } = await batchLines.updateMany(
        { tenantId, batchId, state: 'waiting', index: { $nin: [...except] } },
        { $set: { state: 'failed', error }, $unset: { requestJson: 1, retry: 1 } },
      );
      return modifiedCount;
    },

    async renumber(tenantId, batchId, { index, requestId }, next) {
      const _id = batchLineId(batchId, index);
      const { modifiedCount } = await batchLines.updateOne(
        { _id, tenantId, requestId, state: 'waiting' },
        { $set: next },
      );
      return modifiedCount === 1;
    },

    async count(tenantId, batchId) {
      const [completed, failed] = await Promise.all([
        batchLines.countDocuments({ tenantId, batchId, state: 'completed' }),
        batchLines.countDocuments({ tenantId, batchId, state: 'failed' }),
      ]);
      return { completed, failed };
    },

    async note(tenantId, batchId, state) {
      await batches.updateOne(
        { _id: batchId, tenantId, status: { $in: ['in_progress', 'cancelling'] } },
        { $set: state },
      );
    },

    async reopened(tenantId, batchId) {
      return (await batches.findOne({ _id: batchId, tenantId }, { reopened: 1 }).lean())?.reopened ?? null;
    },

    async finish(tenantId, batchId, from, end) {
      const { matchedCount } = await batches.updateOne(
        { _id: batchId, tenantId, ...from },
        { $set: { ...end, waitingFor: null } },
      );
      return matchedCount === 1;
    },

    async told(tenantId, batchId) {
      // No line of it is tried once more.
      await batchLines.updateMany(
        { tenantId, batchId, failedAt: { $exists: true } },
        { $unset: { requestJson: 1, failedAt: 1, failedCode: 1 } },
      );
      await batches.updateOne({ _id: batchId, tenantId }, { $unset: { openShard: 1 } });
    },

    async abandon(tenantId, batchId, status, now) {
      const { modifiedCount } = await batches.updateOne(
        { _id: batchId, tenantId, status },
        { $set: { status: 'failed', endedAt: now }, $unset: { openShard: 1 } },
      );
      if (modifiedCount === 0) return;
      await batchLines.deleteMany({ tenantId, batchId });
      // Nobody was given its id, so it is as if it had never been.
      await batches.deleteOne({ _id: batchId, tenantId });
    },
  };
}
