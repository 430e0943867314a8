import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Logger } from '../../../shared/logging/logger.ts';
import { batchLineId } from '../../../shared/mongo/batches/batch-lines.ts';
import type { BatchLineRow } from '../../../shared/mongo/batches/batch-lines.ts';
import type { BatchRepository, BatchRow } from '../../../shared/mongo/batches/batch-repository.ts';
import { spaceFields } from '../../../shared/mongo/collection.ts';
import type { BatchQueue } from '../../../shared/requests/queue-store.ts';
import { inTime } from '../../../shared/redis/time-limits.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import type { BatchLine } from './to-line.ts';

/** Bytes that an upload holds in memory before it writes: a smaller batch that is refused is never written. */
const HELD_BYTES_MAX = 8 * 1024 * 1024;
/** Memory of a row on top of its text. */
const ROW_BYTES = 512;
const WRITTEN_LINES = 200;

/** The pauses double from the first to the last, and add up to a quarter of an hour. */
const TAKE_BACK_AGAIN_MS = 250;
const TAKE_BACK_PAUSE_MAX_MS = 512_000;

export type Upload = ReturnType<typeof openUpload>;

export interface UploadDeps {
  batches: BatchRepository;
  batchQueue: BatchQueue;
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

/** The memory that a line takes: V8 keeps text with two bytes a unit where it has other than Latin letters. */
function heldBytesOf(line: BatchLine): number {
  const own = 'error' in line ? [line.error.message, line.error.param] : [line.requestJson];
  const units = [line.customId, line.entityId, ...own].reduce((sum, text) => sum + (text?.length ?? 0), 0);
  return ROW_BYTES + 2 * units;
}

function bytesOf(rows: readonly BatchLineRow[]): number {
  return rows.reduce((sum, { requestJson = '' }) => sum + BATCH_LIMITS.lineBytes + Buffer.byteLength(requestJson), 0);
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

/** Holds lines of a batch, and stores them as a group. The batch is stored before the first of them. */
function createLineGroups(batch: BatchRow, { batches, batchQueue }: UploadDeps) {
  let isStored = false;
  let group: BatchLineRow[] = [];
  let heldBytes = 0;

  async function store(): Promise<void> {
    const lines = group;
    group = [];
    heldBytes = 0;
    // Without Redis no other upload begins, so this one need not fail.
    await batchQueue.takeWritten(batch.shard, batch.tenantId, bytesOf(lines)).catch(() => undefined);
    if (!isStored) {
      // Set before anything else: if this ingress dies, the dispatcher ends the batch, with the lines that were stored.
      isStored = true;
      batch.shard = await batches.insert(batch);
    }
    for (let from = 0; from < lines.length; from += WRITTEN_LINES) {
      await batches.addLines(lines.slice(from, from + WRITTEN_LINES));
    }
  }

  return {
    store,
    isStored: () => isStored,
    isEmpty: () => group.length === 0,
    heldBytes: () => heldBytes,
    hold(row: BatchLineRow, bytes: number): void {
      group.push(row);
      heldBytes += bytes;
    },
  };
}

/** Asks the leader to remove the batch if it appears once MongoDB is back; resolves to `running` if it runs already. */
function refuse({ shard, _id: batchId }: BatchRow, { batchQueue }: UploadDeps) {
  return inTime(batchQueue.decide(shard, batchId, 'refused'));
}

/** Of a batch that must not run. `unsure`: MongoDB did not confirm whether it has started. */
type Stored = 'unstarted' | 'unsure';

/**
 * Removes what is stored. Resolves after the first attempt; if that fails, others follow in the background, because
 * the store that failed the upload usually fails this as well for a while.
 */
async function removeBatch(
  batch: BatchRow,
  deps: UploadDeps,
  stored: Stored,
  pauseMs = TAKE_BACK_AGAIN_MS,
): Promise<void> {
  const { _id: batchId, tenantId } = batch;
  const { batches, log } = deps;
  try {
    const isRunning =
      stored === 'unsure' &&
      ((await refuse(batch, deps)) === 'running' || !(await batches.failUnstarted(tenantId, batchId)));
    if (isRunning) {
      const about = { tenantId, batchId };
      log.error('A batch runs although its caller was told that it does not: both stores were away.', about);
      return;
    }
    await batches.remove(tenantId, batchId);
  } catch (error) {
    log.warn('A refused batch could not be removed; that is tried again.', { tenantId, error });
    if (pauseMs > TAKE_BACK_PAUSE_MAX_MS) return;
    // If this process ends first, the unstarted batch is removed together with those of dead ingresses.
    setTimeout(() => void removeBatch(batch, deps, stored, pauseMs * 2), pauseMs).unref();
  }
}

type Arrived = Parameters<BatchRepository['start']>[2];

/** MongoDB's answer to the start of a batch. */
type StartAnswer =
  | { is: 'started'; row: BatchRow }
  /** The same run has started another batch. */
  | { is: 'repeated'; row: BatchRow }
  /** The batch took too long to arrive, and the dispatcher has given it up. */
  | { is: 'given up' }
  /** MongoDB did not answer: the batch may have started. */
  | { is: 'unsure'; error: unknown };

async function startStored(
  { _id, tenantId }: BatchRow,
  { batches }: UploadDeps,
  arrived: Arrived,
): Promise<StartAnswer> {
  try {
    const row = await batches.start(tenantId, _id, arrived);
    if (row === undefined) return { is: 'given up' };
    return { is: row._id === _id ? 'started' : 'repeated', row };
  } catch (error) {
    return { is: 'unsure', error };
  }
}

/**
 * Stores a batch while it arrives, in groups of lines: reads the next group once the previous one is stored. The last
 * group, often the only one, waits for `start`, so that most batches that turn out not to run are never written. What
 * is written counts for the tenant's minute, even if it is taken back.
 */
export function openUpload(principal: Principal, deps: UploadDeps) {
  const batch = newBatch(principal, deps.clock.now());
  /** `starting`: only `start` decides whether the batch runs. */
  let state: 'arriving' | 'starting' | 'over' = 'arriving';
  let total = 0;
  let failed = 0;
  let totalBytes = 0;
  const lines = createLineGroups(batch, deps);

  async function voidLater(stored: Stored): Promise<void> {
    state = 'over';
    if (lines.isStored()) await removeBatch(batch, deps, stored);
  }

  /** Decides on an answer of MongoDB's, or on its absence. */
  async function decide(answer: StartAnswer, arrived: Arrived): Promise<BatchRow> {
    if (answer.is === 'started') return answer.row;
    if (answer.is === 'unsure') {
      // Under an Idempotency-Key the batch may run, and a repeat is answered with it; without one, a caller that gets 503
      // would send another batch.
      if (arrived.startedUnder !== undefined) throw answer.error;
      if ((await refuse(batch, deps).catch(() => undefined)) === 'running')
        return { ...batch, ...arrived, status: 'in_progress' };
      void voidLater('unsure');
      throw answer.error;
    }
    await voidLater('unstarted');
    if (answer.is === 'repeated') return answer.row;
    throw new ServiceError('conflict', 'The batch took too long to arrive and was given up; send it again in parts.');
  }

  return {
    /** Keeps the next line; resolves when there is room for another one. */
    async add(line: BatchLine): Promise<void> {
      const bytes = heldBytesOf(line);
      const isFull = lines.heldBytes() + bytes > HELD_BYTES_MAX;
      // A batch without any valid request is refused, so nothing of it is stored.
      const willRun = failed < total || !('error' in line);
      if (isFull && willRun && !lines.isEmpty()) await lines.store();
      lines.hold(toRow(batch, total, line), bytes);
      if (!('error' in line)) totalBytes += Buffer.byteLength(line.requestJson);
      total += 1;
      if ('error' in line) failed += 1;
    },

    /**
     * Starts the batch once all of it has arrived. If the same run has already started another batch, removes this one
     * and returns the other. Throws `conflict` if it can no longer start. After any other error it does not run either,
     * unless it has a `startedUnder`, by which a repeat finds it, or both stores are unavailable.
     */
    async start(metadataJson: string | undefined, startedUnder?: string): Promise<BatchRow> {
      if (state !== 'arriving')
        throw new ServiceError('conflict', 'The connection ended before the batch could start.');
      state = 'starting';
      try {
        await lines.store();
      } catch (error) {
        void voidLater('unstarted');
        throw error;
      }
      const arrived = {
        total,
        failed,
        bytes: totalBytes,
        ...(metadataJson === undefined ? {} : { metadataJson }),
        ...(startedUnder === undefined ? {} : { startedUnder }),
      };
      return decide(await startStored(batch, deps, arrived), arrived);
    },

    heldBytes: lines.heldBytes,

    /** Removes what is stored, unless `start` was called. Never rejects; safe to repeat. */
    discard: (): Promise<void> => (state === 'arriving' ? voidLater('unstarted') : Promise.resolve()),
  };
}
