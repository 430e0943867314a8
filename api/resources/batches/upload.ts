import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import type { Principal } from '../../../shared/domain/keys/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import { batchLineId } from '../../../shared/infra/mongo/batches/batch-lines.ts';
import type { BatchLineRow } from '../../../shared/infra/mongo/batches/batch-lines.ts';
import type { BatchRepository, BatchRow } from '../../../shared/infra/mongo/batches/batch-repository.ts';
import { spaceFields } from '../../../shared/infra/mongo/spaces.ts';
import type { BatchQueue } from '../../../shared/infra/redis/requests/queue-store.ts';
import { inTime } from '../../../shared/infra/redis/timing.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import type { BatchLine } from './to-line.ts';

/** Lines of an upload that are in memory at most, beside the line that arrives. */
const GROUP_LINES_MAX = 200;
const GROUP_BYTES_MAX = 4 * 1024 * 1024;
/** Memory of a row beside its text. */
const ROW_BYTES = 512;

/** The pauses double from the first to the last: a quarter of an hour in all. */
const TAKE_BACK_AGAIN_MS = 250;
const TAKE_BACK_PAUSE_MAX_MS = 512_000;

/** A batch that arrives, line by line. */
export interface Upload {
  /** Keeps the next line; resolves when there is room for another. */
  add(line: BatchLine): Promise<void>;
  /** Bytes of the lines that are in memory. */
  heldBytes(): number;
  /**
   * Starts the batch once all of it has arrived. If the same run has started another batch, removes this one and returns
   * that. Throws `conflict` if it cannot start any more. After any other error, too, the batch does not run, unless it has a
   * `startedUnder`, by which a repeat finds it, or both stores are away.
   */
  start(metadataJson: string | undefined, startedUnder?: string): Promise<BatchRow>;
  /** Removes what is stored, unless `start` was called. Never rejects, and is safe to repeat. */
  discard(): Promise<void>;
}

export interface UploadDeps {
  batches: Pick<BatchRepository, 'insert' | 'addLines' | 'start' | 'failUnstarted' | 'remove'>;
  batchQueue: Pick<BatchQueue, 'decide'>;
  clock: Clock;
  log: Logger;
}

function newBatch({ tenantId, shard, keyId, mode }: Principal, now: number): BatchRow {
  return {
    _id: newId('batch'),
    tenantId,
    shard,
    keyId,
    mode,
    status: 'validating',
    total: 0,
    completed: 0,
    failed: 0,
    waitingFor: null,
    createdAt: now,
    expiresAt: now + BATCH_LIMITS.lifeMs,
    removeAt: new Date(now + BATCH_LIMITS.keptMs),
  };
}

function toRow(batch: BatchRow, index: number, line: BatchLine): BatchLineRow {
  const { _id: batchId, removeAt } = batch;
  return {
    _id: batchLineId(batchId, index),
    ...spaceFields(batch),
    batchId,
    index,
    requestId: newId('req'),
    state: 'error' in line ? 'failed' : 'waiting',
    ...line,
    removeAt,
  };
}

/**
 * Stores a batch while it arrives, a group of lines at a time: the next one is read when the one before is stored. The
 * last group, often the only one, waits for `start`, so that what turns out not to run has mostly not been written.
 */
export function openUpload(principal: Principal, { batches, batchQueue, clock, log }: UploadDeps): Upload {
  const batch = newBatch(principal, clock.now());
  const { _id: batchId, tenantId } = batch;
  let state: 'arriving' | 'starting' | 'over' = 'arriving';
  let isStored = false;
  /** MongoDB did not answer whether the batch has started. */
  let isUnsure = false;
  let total = 0;
  let failed = 0;
  let totalBytes = 0;
  let group: BatchLineRow[] = [];
  let groupBytes = 0;

  async function store(): Promise<void> {
    const lines = group;
    group = [];
    groupBytes = 0;
    if (!isStored) {
      // First of all: whoever looks after batches ends one whose ingress has died, with what it has of lines.
      isStored = true;
      batch.shard = await batches.insert(batch);
    }
    for (let from = 0; from < lines.length; from += GROUP_LINES_MAX) {
      await batches.addLines(lines.slice(from, from + GROUP_LINES_MAX));
    }
  }

  /** Has the leader that finds the batch once MongoDB is back remove it. Resolves to `running` if one runs it already. */
  const refuse = () => inTime(batchQueue.decide(batch.shard, batchId, 'refused'));

  /**
   * Removes what is stored. Resolves after the first try; if that fails, others follow in the background, as the store that
   * failed the upload mostly fails this as well, for a while.
   */
  async function takeBack(pauseMs = TAKE_BACK_AGAIN_MS): Promise<void> {
    state = 'over';
    if (!isStored) return;
    try {
      const isRunning =
        isUnsure && ((await refuse()) === 'running' || !(await batches.failUnstarted(tenantId, batchId)));
      if (isRunning) {
        const about = { tenantId, batchId };
        log.error('A batch runs although its caller was told that it does not: both stores were away.', about);
        return;
      }
      await batches.remove(tenantId, batchId);
    } catch (error) {
      log.warn('A refused batch could not be removed; that is tried again.', { tenantId, error });
      if (pauseMs > TAKE_BACK_PAUSE_MAX_MS) return;
      // Where this process ends before, a batch that has not started is removed with those whose ingress has died.
      setTimeout(() => void takeBack(pauseMs * 2), pauseMs).unref();
    }
  }

  return {
    async add(line) {
      const bytes = 'error' in line ? 0 : Buffer.byteLength(line.requestJson);
      const isFull = group.length >= GROUP_LINES_MAX || groupBytes + bytes > GROUP_BYTES_MAX;
      // A batch without a valid request is refused: nothing of it is stored.
      const willRun = failed < total || !('error' in line);
      if (isFull && willRun && group.length > 0) await store();
      group.push(toRow(batch, total, line));
      groupBytes += bytes;
      totalBytes += bytes;
      total += 1;
      if ('error' in line) failed += 1;
    },

    async start(metadataJson, startedUnder) {
      if (state !== 'arriving')
        throw new ServiceError('conflict', 'The connection ended before the batch could start.');
      state = 'starting';
      try {
        await store();
      } catch (error) {
        void takeBack();
        throw error;
      }
      const arrived = {
        total,
        failed,
        bytes: totalBytes,
        ...(metadataJson === undefined ? {} : { metadataJson }),
        ...(startedUnder === undefined ? {} : { startedUnder }),
      };
      let row: BatchRow | undefined;
      try {
        row = await batches.start(tenantId, batchId, arrived);
      } catch (error) {
        // It may have started all the same. Under an Idempotency-Key it then runs, and is what a repeat is answered with;
        // else a caller that is told 503 sends another.
        if (startedUnder !== undefined) throw error;
        isUnsure = true;
        if ((await refuse().catch(() => undefined)) === 'running')
          return { ...batch, ...arrived, status: 'in_progress' };
        void takeBack();
        throw error;
      }
      if (row?._id === batchId) return row;
      await takeBack();
      if (row !== undefined) return row;
      throw new ServiceError('conflict', 'The batch took too long to arrive and was given up; send it again in parts.');
    },

    heldBytes: () => groupBytes + group.length * ROW_BYTES,

    discard: () => (state === 'arriving' ? takeBack() : Promise.resolve()),
  };
}
