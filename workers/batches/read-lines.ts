import type { BatchWorkRepository, WaitingLine } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import type { BatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import type { OpenBatch } from './open-batch.ts';

export interface ReadLinesDeps {
  work: Pick<BatchWorkRepository, 'waiting' | 'waitingAt' | 'renumber'>;
  queue: Pick<BatchQueue, 'states'>;
}

const PAGE = 100;
/** Fewer than this are topped up. */
const READY_MIN = 50;
/** With so many in memory that wait for a provider, those behind them are not read. */
const LATER_MAX = 500;

/**
 * Brings lines of a batch into memory, a page at a time. A line whose request Redis knows was sent by an earlier leader
 * of the same shard: it is in flight, and not sent again.
 */
export function createReadLines({ work, queue }: ReadLinesDeps) {
  function wait(batch: OpenBatch, line: WaitingLine): void {
    if (line.retry === undefined) batch.ready.push(line);
    else batch.later.push(line);
  }

  async function place(batch: OpenBatch, line: WaitingLine, state: string | undefined): Promise<void> {
    const { tenantId, _id: batchId } = batch.row;
    if (batch.inFlight.has(line.index)) return;
    if (state === undefined) wait(batch, line);
    else if (state !== 'void') batch.inFlight.set(line.index, line);
    else {
      // A request that was taken back can never run under its id.
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
    for (const [index, line] of lines.entries()) await place(batch, line, states[index]);
  }

  return {
    /** Has some lines ready, unless the batch has no more. */
    async more(batch: OpenBatch): Promise<void> {
      if (batch.isRead || batch.ready.length >= READY_MIN || batch.later.length >= LATER_MAX) return;
      const { tenantId, _id: batchId } = batch.row;
      const lines = await work.waiting(tenantId, batchId, batch.cursor, PAGE);
      batch.cursor = lines.at(-1)?.index ?? batch.cursor;
      batch.isRead = lines.length < PAGE;
      await placeAll(batch, lines);
    },

    /** Has one line sent once more: Redis has lost its request, or took it back, or it is to be tried again. */
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
