import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import type {
  BatchWorkRepository,
  LineEnd,
  SendableLine,
} from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import { SENDER_MS } from './line-sender.ts';
import type { FindSender, LineSender } from './line-sender.ts';
import type { OpenBatch, OpenLine } from './open-batch.ts';
import type { SendLine } from './send-line.ts';

export interface SendSliceDeps {
  work: Pick<BatchWorkRepository, 'end' | 'toSend'>;
  findSender: FindSender;
  sendLine: SendLine;
  /** A line of the tenant has been refused; `length`: of its request. */
  onRefused: (tenantId: string, length: number) => void;
}

/** Rejects where another process may have led meanwhile. */
export type KeepLead = () => Promise<void>;

/** A request that is known to be longer is read alone. */
const LARGE = 1_000_000;

/**
 * A line that has waited so long for its key's tokens has them kept
 * (docs/decisions/0096-a-line-that-waits-has-tokens-kept.md).
 */
const OVERDUE_MS = 180_000;

/** A line's row, and what the leader knows beside it. */
type ReadLine = SendableLine & OpenLine;

/** How many of the first lines are read at once. */
function readable(lines: readonly OpenLine[], count: number): number {
  let sum = 0;
  const over = lines.slice(0, count).findIndex(({ length = 0 }) => (sum += length) > LARGE);
  return over === -1 ? count : Math.max(1, over);
}

/** Sends up to `count` of a batch's next lines at once, and ends those that are refused for good. */
export function createSendSlice({ work, findSender, sendLine, onRefused }: SendSliceDeps) {
  /** `isFirst`: of the batch's lines that may be sent, so that tokens are kept for one line of it. */
  async function send(batch: OpenBatch, line: ReadLine, sender: LineSender, isFirst: boolean): Promise<LineEnd[]> {
    const { index, requestId, tier, retry, waitsSince = performance.now() } = line;
    const length = line.requestJson?.length ?? 0;
    const open: OpenLine = { index, requestId, length, ...(tier && { tier }), ...(retry && { retry }) };
    const failed = (error: ErrorDetail): LineEnd[] => [{ index, requestId, status: 'failed', error }];
    if ('fault' in sender) return failed(sender.fault);
    // The tenant has just been moved: whoever leads on its shard goes on with the batch.
    if (sender.principal.shard !== batch.row.shard) {
      batch.ready.push(open);
      batch.notBefore = performance.now() + SENDER_MS;
      return [];
    }
    const isOverdue = isFirst && performance.now() - waitsSince >= OVERDUE_MS;
    const sent = await sendLine(line, sender.principal, { batchId: batch.row._id, tokens: batch.tokens, isOverdue });
    if (sent.kind === 'refused') return failed(sent.error);
    if (sent.kind === 'sent') {
      batch.inFlight.set(line.index, {
        ...open,
        ...(sent.promptTokens !== undefined && { promptTokens: sent.promptTokens }),
      });
      return [];
    }
    if (sent.kind === 'held') {
      batch.later.push({ ...open, tier: sent.tier });
      return [];
    }
    batch.ready.push(sent.waitFor === 'tpm' ? { ...open, waitsSince } : open);
    onRefused(batch.row.tenantId, length);
    batch.refusedAt = performance.now();
    batch.waitingFor = sent.waitFor;
    batch.notBefore = Math.max(batch.notBefore, performance.now() + sent.ms);
    return [];
  }

  return async (batch: OpenBatch, count: number, keepLead: KeepLead): Promise<void> => {
    const { tenantId, _id: batchId } = batch.row;
    const sender = await findSender(batch);
    // A tenant's lines may take long: another process may have ended or sent these meanwhile.
    await keepLead();
    const read = batch.ready.splice(0, readable(batch.ready, count));
    const known = new Map(read.map((line) => [line.index, line]));
    // They may have waited here for long: a line whose entity was deleted meanwhile has been ended.
    const slice = await work.toSend(
      tenantId,
      batchId,
      read.map(({ index }) => index),
    );
    batch.waitingFor = null;
    batch.refusedAt = 0;
    const sending = slice.map((line, at) => send(batch, { ...known.get(line.index), ...line }, sender, at === 0));
    const ends = (await Promise.all(sending)).flat();
    batch.ready.sort((one, other) => one.index - other.index);
    if (ends.length === 0) return;
    // Another leader may have sent what was refused here.
    await keepLead();
    batch.counts.failed += await work.end(tenantId, batchId, ends);
  };
}
