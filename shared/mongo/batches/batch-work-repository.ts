import type { Connection, Model } from 'mongoose';

import type { BatchStatus } from '../../contracts/batches.ts';
import type { EndedAnswer } from '../../contracts/jobs.ts';
import type { OutageCode } from '../../domain/request-times.ts';
import type { ErrorDetail } from '../../errors/error-body.ts';
import { batchLineId, batchLineModel } from './batch-lines.ts';
import type { BatchLineRow } from './batch-lines.ts';
import { batchModel } from './batch-repository.ts';
import type { BatchRow } from './batch-repository.ts';

/** Either the answer of the line's request, or an error without running. */
export type LineEnd = WaitingLine & { status: 'completed' | 'failed' } & (
    | { answer: Pick<EndedAnswer, 'fields' | 'entries'>; outage?: { code: OutageCode; at: number } | undefined }
    | { error: ErrorDetail; names?: { entityId: string; customId: string | null } }
  );

/** Leaves the request out: it may have megabytes while many lines wait in memory. */
export type WaitingLine = Pick<BatchLineRow, 'index' | 'requestId' | 'retry'>;

type NextTry = Pick<WaitingLine, 'requestId' | 'retry'>;

export type SendableLine = WaitingLine & Pick<BatchLineRow, 'requestJson' | 'entityId' | 'customId'>;

export interface BatchCounts {
  completed: number;
  failed: number;
}

/** The workers' side of batches. */
export type BatchWorkRepository = ReturnType<typeof createBatchWorkRepository>;

interface BatchEnd {
  status: BatchStatus;
  endedAt: number;
}

function toUpdate(tenantId: string, batchId: string, { index, requestId, status, ...end }: LineEnd) {
  const result =
    'answer' in end ? { fields: end.answer.fields, entries: end.answer.entries } : { error: end.error, ...end.names };
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

async function endWaitingLines(
  batchLines: Model<BatchLineRow>,
  tenantId: string,
  batchId: string,
  except: readonly number[],
  error: ErrorDetail,
): Promise<number> {
  const { modifiedCount } = await batchLines.updateMany(
    { tenantId, batchId, state: 'waiting', index: { $nin: [...except] } },
    { $set: { state: 'failed', error }, $unset: { requestJson: 1, retry: 1 } },
  );
  return modifiedCount;
}

async function renumberLine(
  batchLines: Model<BatchLineRow>,
  tenantId: string,
  batchId: string,
  { index, requestId }: WaitingLine,
  next: NextTry,
): Promise<boolean> {
  const _id = batchLineId(batchId, index);
  const { modifiedCount } = await batchLines.updateOne({ _id, tenantId, requestId, state: 'waiting' }, { $set: next });
  return modifiedCount === 1;
}

type BatchProgress = BatchCounts & Pick<BatchRow, 'waitingFor'> & { startedAt?: number };

function createLineWork(batchLines: Model<BatchLineRow>) {
  return {
    /** Without a result, numbered above `after`, in order. */
    waiting: (tenantId: string, batchId: string, after: number, limit: number): Promise<WaitingLine[]> =>
      batchLines
        .find({ tenantId, batchId, index: { $gt: after }, state: 'waiting' }, { index: 1, requestId: 1, retry: 1 })
        .sort({ index: 1 })
        .limit(limit)
        .lean(),

    /** The lines with these numbers that have no result yet, with their requests, in order. */
    toSend: (tenantId: string, batchId: string, indexes: readonly number[]): Promise<SendableLine[]> =>
      batchLines
        .find(
          { _id: { $in: indexes.map((index) => batchLineId(batchId, index)) }, tenantId, state: 'waiting' },
          { index: 1, requestId: 1, requestJson: 1, entityId: 1, customId: 1, retry: 1 },
        )
        .sort({ index: 1 })
        .lean(),

    /** The line with this number, if it has no result. */
    async waitingAt(tenantId: string, batchId: string, index: number): Promise<WaitingLine | undefined> {
      const line = await batchLines
        .findOne({ _id: batchLineId(batchId, index), tenantId, state: 'waiting' }, { index: 1, requestId: 1, retry: 1 })
        .lean();
      return line ?? undefined;
    },

    /** Returns how many lines it changed: those still waiting under that request id. Safe to repeat. */
    async end(tenantId: string, batchId: string, ends: readonly LineEnd[]): Promise<number> {
      const writes = ends.map((end) => toUpdate(tenantId, batchId, end));
      if (writes.length === 0) return 0;
      const { modifiedCount } = await batchLines.bulkWrite(writes, { ordered: false });
      return modifiedCount;
    },

    /** Returns the number of ended lines; `except` has line numbers. */
    endWaiting: (tenantId: string, batchId: string, except: readonly number[], error: ErrorDetail): Promise<number> =>
      endWaitingLines(batchLines, tenantId, batchId, except, error),

    /** Gives a waiting line a request id for its next try. False: its id is not that of `line`, or it has ended. */
    renumber: (tenantId: string, batchId: string, line: WaitingLine, next: NextTry): Promise<boolean> =>
      renumberLine(batchLines, tenantId, batchId, line, next),

    async count(tenantId: string, batchId: string): Promise<BatchCounts> {
      const countIn = (state: 'completed' | 'failed') => batchLines.countDocuments({ tenantId, batchId, state });
      const [completed, failed] = await Promise.all([countIn('completed'), countIn('failed')]);
      return { completed, failed };
    },
  };
}

async function finishBatch(
  batches: ReturnType<typeof batchModel>,
  tenantId: string,
  batchId: string,
  from: { status: BatchStatus; reopened: number | null },
  end: BatchCounts & BatchEnd,
): Promise<boolean> {
  const { matchedCount } = await batches.updateOne(
    { _id: batchId, tenantId, ...from },
    { $set: { ...end, waitingFor: null } },
  );
  return matchedCount === 1;
}

async function closeBatch(
  batchLines: ReturnType<typeof batchLineModel>,
  batches: ReturnType<typeof batchModel>,
  tenantId: string,
  batchId: string,
): Promise<void> {
  // Lines that failed in an outage are kept until here, for an administrator to retry.
  await batchLines.updateMany(
    { tenantId, batchId, failedAt: { $exists: true } },
    { $unset: { requestJson: 1, failedAt: 1, failedCode: 1 } },
  );
  await batches.updateOne({ _id: batchId, tenantId }, { $unset: { openShard: 1 } });
}

export function createBatchWorkRepository(connection: Connection) {
  const batches = batchModel(connection);
  const batchLines = batchLineModel(connection);
  return {
    ...createLineWork(batchLines),

    /** Includes ended batches whose end has not been published; oldest first. */
    open: (shard: number): Promise<BatchRow[]> =>
      batches.find({ openShard: shard }, { metadataJson: 0 }).sort({ createdAt: 1 }).lean(),

    /** Leaves an ended batch as it is. Safe to repeat. */
    async recordProgress(tenantId: string, batchId: string, state: BatchProgress): Promise<void> {
      const open = { _id: batchId, tenantId, status: { $in: ['in_progress', 'cancelling'] } } as const;
      await batches.updateOne(open, { $set: state });
    },

    /** For `finish`; read it before the counts that decide the end. */
    async reopened(tenantId: string, batchId: string): Promise<number | null> {
      return (await batches.findOne({ _id: batchId, tenantId }, { reopened: 1 }).lean())?.reopened ?? null;
    },

    /** The batch stays open until `close`. False: a line was set waiting again, or the status has changed. */
    finish: (
      tenantId: string,
      batchId: string,
      from: { status: BatchStatus; reopened: number | null },
      end: BatchCounts & BatchEnd,
    ): Promise<boolean> => finishBatch(batches, tenantId, batchId, from, end),

    /** Called once the event of the end is published: the leader has no more work with it. Safe to repeat. */
    close: (tenantId: string, batchId: string): Promise<void> => closeBatch(batchLines, batches, tenantId, batchId),

    /** Deletes a batch whose id nobody was given, and its lines; not if its `status` has changed or a line was sent. */
    async removeUnstarted(tenantId: string, batchId: string, status: BatchStatus, now: number): Promise<void> {
      const { modifiedCount } = await batches.updateOne(
        { _id: batchId, tenantId, status, startedAt: { $exists: false } },
        { $set: { status: 'failed', endedAt: now }, $unset: { openShard: 1 } },
      );
      if (modifiedCount === 0) return;
      await batchLines.deleteMany({ tenantId, batchId });
      // Its id was given to nobody, so it is as if it had never been.
      await batches.deleteOne({ _id: batchId, tenantId });
    },
  };
}
