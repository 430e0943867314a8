import { hideName } from '../../shared/domain/pseudonyms.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { seqAt } from '../../shared/domain/request-times.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import type { ErasureGate, IsDeletedSince } from '../../shared/erasure-gate.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { ENTITY_GONE } from '../../shared/mongo/batches/batch-lines.ts';
import type {
  BatchWorkRepository,
  LineEnd,
  SendableLine,
  WaitingLine,
} from '../../shared/mongo/batches/batch-work-repository.ts';
import type { BatchQueue } from '../../shared/requests/queue-store.ts';
import type { FailedTries } from './line-state.ts';
import { advance, readyLines } from './open-batch.ts';
import type { OpenBatch, OpenLine } from './open-batch.ts';
import { SENDER_MS } from './send-line.ts';
import type { FindSender, LineSender, SendLine } from './send-line.ts';

export interface ReadLinesDeps {
  work: Pick<BatchWorkRepository, 'waiting' | 'waitingAt' | 'renumber'>;
  queue: Pick<BatchQueue, 'states'>;
  failedTries: Pick<FailedTries, 'end'>;
  clock: Clock;
}

const PAGE = 100;
/** More lines are read when fewer than this are ready. */
const READY_MIN = 50;
/** No more lines are read while so many wait for their next try. All of these are due within a minute or so. */
const LATER_MAX = 500;

/** Redis knows nothing of the line's request, or that it was taken back: it does not run. */
const isUnsent = (state: string | undefined) => state === undefined || state === 'void';

/**
 * Brings lines of a batch into memory, a page at a time. If Redis knows a line's request, an earlier leader has sent
 * it: it is in flight and not sent again.
 */
export function createReadLines({ work, queue, failedTries, clock }: ReadLinesDeps) {
  /** An earlier leader saw these tries end. It may have died together with Redis, which has forgotten the ends. */
  async function endFailedTries(batch: OpenBatch, lines: readonly WaitingLine[]): Promise<void> {
    const failed = lines.flatMap(({ retry }) => (retry?.requestId === undefined ? [] : [retry.requestId]));
    await Promise.all(failed.map((requestId) => failedTries.end(batch.row, requestId)));
  }

  async function placeAll(batch: OpenBatch, lines: readonly WaitingLine[], mayRun = false): Promise<void> {
    const { tenantId, shard, _id: batchId } = batch.row;
    const known = await queue.states(
      shard,
      lines.map(({ requestId }) => requestId),
    );
    const states = mayRun ? known.map((state) => state ?? 'running') : known;
    const unsent = lines.filter((_line, at) => isUnsent(states[at]));
    await endFailedTries(batch, unsent);
    const waits: OpenLine[] = [];
    for (const [at, line] of lines.entries()) {
      if (!isUnsent(states[at]) || batch.lines.inFlight.has(line.index)) continue;
      // Redis refuses the id of a request that was taken back, so the line needs another.
      const isOwn =
        states[at] === undefined || (await work.renumber(tenantId, batchId, line, { requestId: newId('req') }));
      if (isOwn) waits.push({ index: line.index, ...(line.retry && { retry: line.retry }) });
    }
    const sent = lines.filter((line, at) => !isUnsent(states[at]) && !batch.lines.inFlight.has(line.index));
    advance(batch, { kind: 'sent', lines: sent });
    advance(batch, { kind: 'waits', lines: waits });
  }

  return {
    /** Reads the next page, of so many lines, if lines run short. `mayRun`: lines that Redis does not know count as in flight. */
    async more(batch: OpenBatch, page = PAGE, mayRun = false): Promise<void> {
      const { isRead, cursor, waiting } = batch.lines;
      const ready = readyLines(batch, clock.now()).length;
      if (isRead || ready >= READY_MIN || waiting.length - ready >= LATER_MAX) return;
      const { tenantId, _id: batchId } = batch.row;
      const lines = await work.waiting(tenantId, batchId, cursor, page);
      advance(batch, { kind: 'page', cursor: lines.at(-1)?.index ?? cursor, isRead: lines.length < page });
      await placeAll(batch, lines, mayRun);
    },

    /** Reads a line again that was thought to be in flight, because Redis has lost its request or took it back. */
    async again(batch: OpenBatch, index: number): Promise<void> {
      const { tenantId, _id: batchId } = batch.row;
      advance(batch, { kind: 'gone', indexes: [index] });
      const line = await work.waitingAt(tenantId, batchId, index);
      if (line !== undefined) await placeAll(batch, [line]);
    },
  };
}

export type ReadLines = ReturnType<typeof createReadLines>;

export interface SendSliceDeps {
  work: Pick<BatchWorkRepository, 'end' | 'toSend'>;
  queue: Pick<BatchQueue, 'states'>;
  findSender: FindSender;
  sendLine: SendLine;
  isDeletedSince: IsDeletedSince;
  nameOf: ErasureGate['nameOf'];
  /** Admission refused a line of the tenant for the moment; `length`: of its request as JSON. */
  onRefused: (tenantId: string, length: number) => void;
  clock: Clock;
}

/** Renews the lease. Rejects where another process may have led since the round began. */
export type KeepLead = () => Promise<void>;

/** Requests of a slice are read together up to this length, so a longer one is read alone. In characters of JSON. */
const LARGE = 1_000_000;

type ReadLine = SendableLine & OpenLine;

function readable(lines: readonly OpenLine[], count: number): number {
  let sum = 0;
  const over = lines.slice(0, count).findIndex(({ length = 0 }) => (sum += length) > LARGE);
  return over === -1 ? count : Math.max(1, over);
}

/**
 * Ends lines that may not be sent any more. The answer of Redis to a line that seems unsent may have been lost, so that
 * it runs and is charged: Redis knows.
 */
async function endUnsent(
  { queue }: SendSliceDeps,
  batch: OpenBatch,
  lines: readonly ReadLine[],
  error: ErrorDetail,
): Promise<LineEnd[]> {
  const states = await queue.states(
    batch.row.shard,
    lines.map(({ requestId }) => requestId),
  );
  const sent = lines.filter((_line, at) => !isUnsent(states[at]));
  const known = sent.map(({ index, requestId, retry }) => ({ index, requestId, ...(retry && { retry }) }));
  advance(batch, { kind: 'sent', lines: known });
  const unsent = lines.filter((line) => !sent.includes(line));
  return unsent.map(({ index, requestId }) => ({ index, requestId, status: 'failed', error }));
}

async function send(deps: SendSliceDeps, batch: OpenBatch, line: ReadLine, principal: Principal): Promise<LineEnd[]> {
  const { sendLine, onRefused } = deps;
  const { index, requestId, retry } = line;
  const length = line.requestJson?.length ?? 0;
  const tried = retry && { retry };
  const again = { kind: 'waits', lines: [{ index, length, ...tried }] } as const;
  // The tenant was moved to another shard, whose leader goes on with the batch.
  if (principal.shard !== batch.row.shard) {
    advance(batch, again);
    advance(batch, { kind: 'moved', until: performance.now() + SENDER_MS });
    return [];
  }
  const sent = await sendLine(line, principal, { batchId: batch.row._id, tokens: batch.tokens });
  if (sent.kind === 'refused') return [{ index, requestId, status: 'failed', error: sent.error }];
  if (sent.kind === 'sent') {
    const { promptTokens } = sent;
    advance(batch, {
      kind: 'sent',
      lines: [{ index, requestId, ...tried, ...(promptTokens !== undefined && { promptTokens }) }],
    });
  } else if (sent.kind === 'held') advance(batch, { kind: 'held', index, tier: sent.tier });
  else {
    advance(batch, again);
    advance(batch, { kind: 'refused', waitFor: sent.waitFor, now: performance.now(), ms: sent.ms });
    onRefused(batch.row.tenantId, length);
  }
  return [];
}

/** A line that was stored behind the last pass of its entity's deletion still has the name. */
async function endDeleted(deps: SendSliceDeps, batch: OpenBatch, line: ReadLine, entityId: string): Promise<LineEnd[]> {
  const { row } = batch;
  const ends = await endUnsent(deps, batch, [line], ENTITY_GONE);
  const name = await deps.nameOf(row, entityId, seqAt(row.createdAt));
  if (name === entityId) return ends;
  const customId = line.customId === null ? null : hideName(line.customId, entityId, name);
  return ends.map((end) => ({ ...end, names: { entityId: name, customId } }));
}

async function sendOrEnd(
  deps: SendSliceDeps,
  batch: OpenBatch,
  lines: readonly ReadLine[],
  sender: LineSender,
): Promise<LineEnd[]> {
  if ('fault' in sender) return endUnsent(deps, batch, lines, sender.fault);
  const { row } = batch;
  const sendOne = async (line: ReadLine) =>
    // The line was given before the deletion: sent, it would bring the entity back.
    line.entityId !== undefined && (await deps.isDeletedSince(row, line.entityId, row.createdAt))
      ? endDeleted(deps, batch, line, line.entityId)
      : send(deps, batch, line, sender.principal);
  return (await Promise.all(lines.map(sendOne))).flat();
}

/** Sends up to `count` of a batch's next lines at once, and ends those that are refused for good. */
export function createSendSlice(deps: SendSliceDeps) {
  const { work, findSender, clock } = deps;

  return async (batch: OpenBatch, count: number, keepLead: KeepLead): Promise<void> => {
    const { tenantId, _id: batchId } = batch.row;
    const sender = await findSender(batch);
    // Sending the lines of others may have taken long, and another leader may have sent or ended these meanwhile.
    await keepLead();
    const ready = readyLines(batch, clock.now());
    const read = ready.slice(0, readable(ready, count));
    advance(batch, { kind: 'taken', lines: read });
    const known = new Map(read.map((line) => [line.index, line]));
    // Without those that have ended since they were read, for example by the deletion of their entity.
    const slice = await work.toSend(
      tenantId,
      batchId,
      read.map(({ index }) => index),
    );
    const lines = slice.map((line): ReadLine => ({ ...known.get(line.index), ...line }));
    const ends = await sendOrEnd(deps, batch, lines, sender);
    if (ends.length === 0) return;
    // If another process leads by now, it may have sent what was refused here.
    await keepLead();
    batch.counts.failed += await work.end(tenantId, batchId, ends);
  };
}
