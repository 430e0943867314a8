import type { Principal } from '../../shared/domain/principal.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import type {
  BatchWorkRepository,
  LineEnd,
  SendableLine,
  WaitingLine,
} from '../../shared/mongo/batches/batch-work-repository.ts';
import type { BatchQueue } from '../../shared/requests/queue-store.ts';
import type { FailedTries } from './line-state.ts';
import type { OpenBatch, OpenLine } from './open-batch.ts';
import { SENDER_MS } from './send-line.ts';
import type { FindSender, SendLine } from './send-line.ts';

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
const isUnsent = (state: string | undefined) => state === undefined || state === 'void';

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

  async function placeAll(batch: OpenBatch, lines: readonly WaitingLine[], mayRun = false): Promise<void> {
    const known = await queue.states(
      batch.row.shard,
      lines.map(({ requestId }) => requestId),
    );
    const states = mayRun ? known.map((state) => state ?? 'running') : known;
    await endFailedTries(
      batch,
      lines.filter((_line, index) => isUnsent(states[index])),
    );
    for (const [index, line] of lines.entries()) await place(batch, line, states[index]);
  }

  return {
    /** Reads the next page, of so many lines, if lines run short. `mayRun`: lines that Redis does not know count as in flight. */
    async more(batch: OpenBatch, page = PAGE, mayRun = false): Promise<void> {
      if (batch.isRead || batch.ready.length >= READY_MIN || batch.later.length >= LATER_MAX) return;
      const { tenantId, _id: batchId } = batch.row;
      const lines = await work.waiting(tenantId, batchId, batch.cursor, page);
      batch.cursor = lines.at(-1)?.index ?? batch.cursor;
      batch.isRead = lines.length < page;
      await placeAll(batch, lines, mayRun);
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

export interface SendSliceDeps {
  work: Pick<BatchWorkRepository, 'end' | 'toSend'>;
  queue: Pick<BatchQueue, 'states'>;
  findSender: FindSender;
  sendLine: SendLine;
  /** Admission refused a line of the tenant for the moment; `length`: of its request as JSON. */
  onRefused: (tenantId: string, length: number) => void;
}

/** Renews the lease. Rejects where another process may have led since the round began. */
export type KeepLead = () => Promise<void>;

/** Requests of a slice are read together up to this length, so a longer one is read alone. In characters of JSON. */
const LARGE = 1_000_000;

/** A line as it was read for sending, with what the leader knows of it. */
type ReadLine = SendableLine & OpenLine;

/** How many of the first `count` lines are read at once. */
function readable(lines: readonly OpenLine[], count: number): number {
  let sum = 0;
  const over = lines.slice(0, count).findIndex(({ length = 0 }) => (sum += length) > LARGE);
  return over === -1 ? count : Math.max(1, over);
}

/** Sends up to `count` of a batch's next lines at once, and ends those that are refused for good. */
export function createSendSlice({ work, queue, findSender, sendLine, onRefused }: SendSliceDeps) {
  /**
   * Ends lines whose key may not send any more. Of a line that seemed not to be sent the answer of Redis may have been lost, so
   * that it runs and is charged: Redis knows.
   */
  async function endForKey(batch: OpenBatch, lines: readonly ReadLine[], error: ErrorDetail): Promise<LineEnd[]> {
    const states = await queue.states(
      batch.row.shard,
      lines.map(({ requestId }) => requestId),
    );
    for (const [at, { index, requestId, retry }] of lines.entries())
      if (!isUnsent(states[at])) batch.inFlight.set(index, { index, requestId, ...(retry && { retry }) });
    const unsent = lines.filter(({ index }) => !batch.inFlight.has(index));
    return unsent.map(({ index, requestId }) => ({ index, requestId, status: 'failed', error }));
  }

  async function send(batch: OpenBatch, line: ReadLine, principal: Principal): Promise<LineEnd[]> {
    const { index, requestId, retry } = line;
    const length = line.requestJson?.length ?? 0;
    const open: OpenLine = { index, length, ...(retry && { retry }) };
    const failed = (error: ErrorDetail): LineEnd[] => [{ index, requestId, status: 'failed', error }];
    // The tenant was moved to another shard, whose leader goes on with the batch.
    if (principal.shard !== batch.row.shard) {
      batch.ready.push(open);
      batch.notBefore = performance.now() + SENDER_MS;
      return [];
    }
    const sent = await sendLine(line, principal, { batchId: batch.row._id, tokens: batch.tokens });
    if (sent.kind === 'refused') return failed(sent.error);
    if (sent.kind === 'sent') {
      batch.inFlight.set(index, {
        index,
        requestId,
        ...(retry && { retry }),
        ...(sent.promptTokens !== undefined && { promptTokens: sent.promptTokens }),
      });
      return [];
    }
    if (sent.kind === 'held') {
      const held = batch.held.get(sent.tier) ?? [];
      held.push(index);
      batch.held.set(sent.tier, held);
      return [];
    }
    batch.ready.push(open);
    onRefused(batch.row.tenantId, length);
    batch.refusedAt = performance.now();
    batch.waitingFor = sent.waitFor;
    batch.notBefore = Math.max(batch.notBefore, performance.now() + sent.ms);
    return [];
  }

  return async (batch: OpenBatch, count: number, keepLead: KeepLead): Promise<void> => {
    const { tenantId, _id: batchId } = batch.row;
    const sender = await findSender(batch);
    // Sending the lines of others may have taken long, and another leader may have sent or ended these meanwhile.
    await keepLead();
    const read = batch.ready.splice(0, readable(batch.ready, count));
    const known = new Map(read.map((line) => [line.index, line]));
    // Without those that have ended since they were read, for example by the deletion of their entity.
    const slice = await work.toSend(
      tenantId,
      batchId,
      read.map(({ index }) => index),
    );
    batch.waitingFor = null;
    batch.refusedAt = 0;
    const lines = slice.map((line): ReadLine => ({ ...known.get(line.index), ...line }));
    const ends =
      'fault' in sender
        ? await endForKey(batch, lines, sender.fault)
        : (await Promise.all(lines.map((line) => send(batch, line, sender.principal)))).flat();
    batch.ready.sort((one, other) => one.index - other.index);
    if (ends.length === 0) return;
    // If another process leads by now, it may have sent what was refused here.
    await keepLead();
    batch.counts.failed += await work.end(tenantId, batchId, ends);
  };
}
