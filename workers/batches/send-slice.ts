import type { Principal } from '../../shared/domain/keys/principal.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import type {
  BatchWorkRepository,
  LineEnd,
  SendableLine,
} from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import type { BatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import { SENDER_MS } from './line-sender.ts';
import type { FindSender } from './line-sender.ts';
import type { OpenBatch, OpenLine } from './open-batch.ts';
import { isUnsent } from './read-lines.ts';
import type { SendLine } from './send-line.ts';

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
