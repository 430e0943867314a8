import { isEndedBatch } from '../../shared/contracts/batches.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { BatchRow } from '../../shared/mongo/batches/batch-repository.ts';
import type { BatchWorkRepository } from '../../shared/mongo/batches/batch-work-repository.ts';
import { isBadDocument } from '../../shared/mongo/faults.ts';
import { isBadKey } from '../../shared/redis/scripts.ts';
import type { BatchQueue, BatchState } from '../../shared/requests/queue-store.ts';
import type { CloseBatch } from './close-batch.ts';
import { advance, openBatch } from './open-batch.ts';
import type { OpenBatch } from './open-batch.ts';

/** A leader's view of its shard. Times come from `performance.now`, which is never set back. */
export interface ShardBatches {
  open: Map<string, OpenBatch>;
  /** Batches with an error of their own, and until when they rest. */
  resting: Map<string, number>;
  readAt: number;
}

/** The time of something that has not happened yet, or is to happen again at once. */
export const NEVER = -Infinity;
const REST_MS = 5_000;

export function emptyShard(): ShardBatches {
  return { open: new Map(), resting: new Map(), readAt: NEVER };
}

export function isResting({ resting }: ShardBatches, batchId: string): boolean {
  return (resting.get(batchId) ?? NEVER) > performance.now();
}

/** True for an error of the batch's own stored data, not of the store. */
function isOwnFault(error: unknown): boolean {
  const isUnreadable = error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError;
  return isUnreadable || isBadKey(error) || isBadDocument(error);
}

/** Acts on one batch, unless the batch is resting. Rejects if a store fails. */
export type DoForBatch = (shard: ShardBatches, batchId: string, act: () => Promise<void>) => Promise<void>;

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
      if (batch !== undefined) advance(batch, { kind: 'rewound' });
    }
  };
}

export interface RefreshShardDeps {
  work: Pick<BatchWorkRepository, 'open' | 'count' | 'removeUnstarted'>;
  queue: Pick<BatchQueue, 'decide'>;
  closeBatch: Pick<CloseBatch, 'publish'>;
  doForBatch: DoForBatch;
  clock: Clock;
  log: Logger;
}

/** Brings in new batches, cancelled ones, and ended ones whose event is unpublished. */
export type RefreshShard = (shard: number, known: ShardBatches) => Promise<void>;

/** Interval of reading the shard's batch rows, which is also the delay of a cancellation. */
const ROWS_MS = 500;
/** An upload older than this has lost its ingress: a request has 20 minutes to arrive. */
const UPLOAD_MAX_MS = 1_500_000;

function forgetOthers({ open, resting }: ShardBatches, rows: readonly BatchRow[]): void {
  const ids = new Set(rows.map(({ _id }) => _id));
  for (const known of [open, resting]) for (const batchId of known.keys()) if (!ids.has(batchId)) known.delete(batchId);
}

/** Undefined: Redis is full or unavailable. Other batches continue; this one is tried again at the next read. */
async function decide(
  { queue, log }: RefreshShardDeps,
  { shard, _id: batchId }: BatchRow,
): Promise<BatchState | undefined> {
  return queue.decide(shard, batchId, 'running').catch((error: unknown) => {
    log.warn('A batch cannot be taken up yet.', { batchId, error });
    return undefined;
  });
}

/** Does nothing if the rows were read less than ROWS_MS ago. */
export function createRefreshShard(deps: RefreshShardDeps): RefreshShard {
  const { work, closeBatch, doForBatch, clock, log } = deps;

  function removeUnstarted({ tenantId, _id, status }: BatchRow): Promise<void> {
    return work.removeUnstarted(tenantId, _id, status, clock.now());
  }

  async function takeUp({ open }: ShardBatches, row: BatchRow): Promise<void> {
    const { _id: batchId, tenantId } = row;
    // A started batch needs no new decision: a full Redis would not give one, and the lines have to end.
    const state = row.startedAt === undefined ? await decide(deps, row) : 'running';
    if (state === 'refused') {
      // MongoDB became unavailable as the batch started, and its caller got an error.
      log.info('A batch that was refused is removed.', { batchId, tenantId });
      await removeUnstarted(row);
    } else if (state === 'running') {
      log.info('A batch is taken up.', { batchId, tenantId, count: row.total });
      open.set(batchId, openBatch(row, await work.count(tenantId, batchId)));
    }
  }

  async function goOnWith(batch: OpenBatch, row: BatchRow): Promise<void> {
    // A line that had failed waits again. Counted as failed as well as by its next end, it would be one too many.
    if (row.reopened !== batch.row.reopened) batch.counts = await work.count(row.tenantId, row._id);
    batch.row = row;
  }

  async function look(known: ShardBatches, row: BatchRow): Promise<void> {
    const batch = known.open.get(row._id);
    if (row.status === 'validating') {
      if (clock.now() - row.createdAt > UPLOAD_MAX_MS) await removeUnstarted(row);
    } else if (isEndedBatch(row.status)) {
      known.open.delete(row._id);
      await doForBatch(known, row._id, () => closeBatch.publish({ row }));
    } else if (batch === undefined) await takeUp(known, row);
    else await goOnWith(batch, row);
  }

  return async (shard, known) => {
    if (performance.now() - known.readAt < ROWS_MS) return;
    const rows = await work.open(shard);
    known.readAt = performance.now();
    forgetOthers(known, rows);
    for (const row of rows) await look(known, row);
  };
}
