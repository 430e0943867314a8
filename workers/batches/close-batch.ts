import { BATCH_LIMITS } from '../../shared/contracts/batches.ts';
import type { BatchStatus } from '../../shared/contracts/batches.ts';
import { LOST } from '../../shared/contracts/events.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { BatchWorkRepository } from '../../shared/mongo/batches/batch-work-repository.ts';
import type { ReplayLog } from '../../shared/redis/redis-return.ts';
import type { AdmissionStore } from '../../shared/requests/admission-store.ts';
import type { BatchQueue } from '../../shared/requests/queue-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { EventSink } from '../../shared/webhooks/publish.ts';
import type { KeepLead, ReadLines } from './send-slice.ts';
import { advance, hasUnsent, isAtRest } from './open-batch.ts';
import type { OpenBatch } from './open-batch.ts';

export interface CloseBatchDeps {
  work: BatchWorkRepository;
  admissions: Pick<AdmissionStore, 'void' | 'voidPermanently' | 'voidRefused'>;
  queue: Pick<BatchQueue, 'close'>;
  lines: Pick<ReadLines, 'more'>;
  events: Pick<EventSink, 'publish'>;
  replayLog: Pick<ReplayLog, 'note'>;
  /** True if the shard's Redis came back within this time. */
  hasReconnectedRecently: (shard: number, withinMs: number) => boolean;
  clock: Clock;
  log: Logger;
}

type Closing = 'cancelled' | 'expired';

const NOT_RUN: Record<Closing, ErrorDetail> = {
  cancelled: { code: 'conflict', message: 'The batch was cancelled before this line had an answer.' },
  expired: {
    code: 'timeout',
    message: `The batch expired before this line had an answer: a batch has ${BATCH_LIMITS.lifeMs / 3_600_000} hours.`,
  },
};

const NOTED: Record<Closing, { code?: 'timeout'; reason: string }> = {
  cancelled: { reason: 'its batch was cancelled' },
  expired: { code: 'timeout', reason: 'its batch expired' },
};

/** Ids alone; each page is searched for among all lines that wait, and the shard's other batches wait until all are read. */
const CLOSING_PAGE = 1_000;
/** By then the slowest worker is connected again, and has put back what it runs. */
const WORKERS_BACK_MS = 30_000;

/** A worker has the line, or has ended it. */
const isRun = (state: string) => state === 'running' || state === 'done';

/** False: some line has not ended, though this process knows of none, or one has begun to wait again meanwhile. */
async function finish({ work, clock }: CloseBatchDeps, batch: OpenBatch, status: BatchStatus): Promise<boolean> {
  const { tenantId, _id: batchId, total, status: from } = batch.row;
  const reopened = await work.reopened(tenantId, batchId);
  const counts = await work.count(tenantId, batchId);
  // They can be lower than what was known: a line that had failed may have been set waiting again.
  batch.counts = counts;
  if (counts.completed + counts.failed < total) return false;
  return work.finish(tenantId, batchId, { status: from, reopened }, { ...counts, status, endedAt: clock.now() });
}

function closingOf({ row }: OpenBatch, now: number): Closing | undefined {
  if (row.status === 'cancelling') return 'cancelled';
  return row.expiresAt <= now ? 'expired' : undefined;
}

/** If Redis later loses the void of a line, it would run the line, whose result says that it did not run. */
function voidAfterReturn(
  { admissions, replayLog, log }: CloseBatchDeps,
  requestId: string,
  { shard, tenantId, keyId, _id: batchId }: OpenBatch['row'],
): void {
  const about = { shard, requestId, tenantId, batchId };
  replayLog.note(async () => {
    if ((await admissions.voidRefused(requestId, { shard, tenantId, keyId }, LOST)) === 'done')
      log.error('A line has ended of which its result says that it did not run; it may be charged.', about);
  }, about);
}

/** Ends a batch whose lines have all ended, that its tenant has cancelled, or that has expired. */
export function createCloseBatch(deps: CloseBatchDeps) {
  const { work, admissions, queue, lines, events, hasReconnectedRecently, clock } = deps;

  /** Ends lines that wait, in memory or in the queue. A line that a worker runs may finish, as its provider may be paid. */
  async function endWaiting(batch: OpenBatch, closing: Closing, keepLead: KeepLead): Promise<void> {
    const { tenantId, shard, keyId, _id: batchId } = batch.row;
    // First of all: from now on Redis admits no line of the batch, even if a former leader still sends one.
    await queue.close(shard, batchId);
    // Redis may have lost that it has admitted a line, and a worker that runs it may be on its way back.
    const mayRun = hasReconnectedRecently(shard, WORKERS_BACK_MS);
    advance(batch, { kind: 'rewound' });
    while (!batch.lines.isRead) {
      await keepLead();
      await lines.more(batch, CLOSING_PAGE, mayRun);
      advance(batch, { kind: 'ended' });
    }
    const owner = { shard, tenantId, keyId };
    const takenOut = new Map<number, string>();
    for (const [index, { requestId }] of batch.lines.inFlight) {
      const state = await admissions.void(requestId, owner, undefined, NOTED[closing]);
      if (!isRun(state)) takenOut.set(index, requestId);
    }
    // Throws if Redis was away meanwhile: it may have lost the end of a line, which its worker is about to replay.
    await keepLead();
    for (const [index, requestId] of mayRun ? takenOut : []) {
      // Until then whoever has the end of a line may put it back (void.lua).
      if (isRun(await admissions.voidPermanently(requestId, owner, LOST))) takenOut.delete(index);
    }
    advance(batch, { kind: 'gone', indexes: [...takenOut.keys()] });
    for (const requestId of takenOut.values()) voidAfterReturn(deps, requestId, batch.row);
    await work.endWaiting(tenantId, batchId, [...batch.lines.inFlight.keys()], NOT_RUN[closing]);
    batch.counts = await work.count(tenantId, batchId);
    batch.isClosed = true;
  }

  return {
    /** Ends the batch if that is due. True: it has ended. Safe to repeat. */
    async closeIfDue(batch: OpenBatch, keepLead: KeepLead): Promise<boolean> {
      const closing = closingOf(batch, clock.now());
      // Once is not always enough: a line that Redis lost or took back waits again, and after a fault of the batch its lines
      // have to be read again, which nothing else does for a closed batch.
      const isToEnd = !batch.isClosed || !batch.lines.isRead || hasUnsent(batch);
      if (closing !== undefined && isToEnd) await endWaiting(batch, closing, keepLead);
      if (!isAtRest(batch)) return false;
      const hasEnded = await finish(deps, batch, closing ?? 'completed');
      if (!hasEnded) advance(batch, { kind: 'rewound' });
      return hasEnded;
    },

    /** Publishes the end of a batch. Rejects while MongoDB is away; the caller has to repeat it. */
    async publish({ row }: Pick<OpenBatch, 'row'>): Promise<void> {
      const { tenantId, mode, _id: batchId, status, total, completed: succeeded, failed } = row;
      const data = { batch_id: batchId, status, total, succeeded, failed };
      await events.publish([{ tenantId, mode, type: 'batch.completed', cause: batchId, data, now: clock.now() }]);
      await work.close(tenantId, batchId);
    },
  };
}

export type CloseBatch = ReturnType<typeof createCloseBatch>;
