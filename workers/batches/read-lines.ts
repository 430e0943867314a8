import type { BatchWorkRepository, WaitingLine } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import type { BatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import type { FailedTries } from './failed-tries.ts';
import type { OpenBatch } from './open-batch.ts';

export interface ReadLinesDeps {
  work: Pick<BatchWorkRepository, 'waiting' | 'waitingAt' | 'renumber'>;
  queue: Pick<BatchQueue, 'states'>;
  failedTries: Pick<FailedTries, 'end'>;
}

const PAGE = 100;
/** More lines are read when fewer than this are ready. */
const READY_MIN = 50;
/** No more lines are read while so many wait for their next try. All of these are due within a minute or so. */
const LATER_MAX = 500;

/** Redis knows nothing of the line's request, or that it was taken back: it does not run. */
export const isUnsent = (state: string | undefined) => state === undefined || state === 'void';

/**
 * Brings lines of a batch into memory, a page at a time. If Redis knows a line's request, an earlier leader has sent it: the
 * line is in flight and is not sent again.
 */
export function createReadLines({ work, queue, failedTries }: ReadLinesDeps) {
  function wait(batch: OpenBatch, { index, retry }: WaitingLine): void {
    if (retry === undefined) batch.ready.push({ index });
    else batch.later.push({ index, retry });
  }

  /** An earlier leader saw these tries end. It may have died together with Redis, which has forgotten the ends. */
  async function endFailedTries(batch: OpenBatch, lines: readonly WaitingLine[]): Promise<void> {
    const failed = lines.flatMap(({ retry }) => (retry?.requestId === undefined ? [] : [retry.requestId]));
    await Promise.all(failed.map((requestId) => failedTries.end(batch.row, requestId)));
  }

  async function place(batch: OpenBatch, line: WaitingLine, state: string | undefined): Promise<void> {
    const { tenantId, _id: batchId } = batch.row;
    if (batch.inFlight.has(line.index)) return;
    if (!isUnsent(state)) batch.inFlight.set(line.index, line);
    else if (state === undefined) wait(batch, line);
    else {
      // Redis refuses the id of a request that was taken back, so the line needs another.
      const requestId = newId('req');
      const isOwn = await work.renumber(tenantId, batchId, line, { requestId });
      if (isOwn) wait(batch, { ...line, requestId });
    }
  }

  async function placeAll(batch: OpenBatch, lines: readonly WaitingLine[]): Promise<void> {
    const states = await queue.states(
      batch.row.shard,
      lines.map(({ requestId }) => requestId),
    );
    await endFailedTries(
      batch,
      lines.filter((_line, index) => isUnsent(states[index])),
    );
    for (const [index, line] of lines.entries()) await place(batch, line, states[index]);
  }

  return {
    /** Reads the next page, of so many lines, if lines run short. */
    async more(batch: OpenBatch, page = PAGE): Promise<void> {
      if (batch.isRead || batch.ready.length >= READY_MIN || batch.later.length >= LATER_MAX) return;
      const { tenantId, _id: batchId } = batch.row;
      const lines = await work.waiting(tenantId, batchId, batch.cursor, page);
      batch.cursor = lines.at(-1)?.index ?? batch.cursor;
      batch.isRead = lines.length < page;
      await placeAll(batch, lines);
    },

    /** Reads a line again that was thought to be in flight, because Redis has lost its request or took it back. */
    async again(batch: OpenBatch, index: number): Promise<void> {
      const { tenantId, _id: batchId } = batch.row;
      batch.inFlight.delete(index);
      const line = await work.waitingAt(tenantId, batchId, index);
      if (line !== undefined) await placeAll(batch, [line]);
      batch.ready.sort((one, other) => one.index - other.index);
    },
  };
}

export type ReadLines = ReturnType<typeof createReadLines>;
