import { allowsScope } from '../../shared/domain/keys/api-key.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import type {
  BatchWorkRepository,
  LineEnd,
  SendableLine,
} from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import type { PrincipalRepository } from '../../shared/infra/mongo/tenants/principal-repository.ts';
import type { BatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { isDue } from './line-retry.ts';
import type { OpenBatch, OpenLine } from './open-batch.ts';
import type { ProviderWatch } from './provider-watch.ts';
import type { ReadLines } from './read-lines.ts';
import type { SendLine } from './send-line.ts';

export interface FillQueueDeps {
  work: Pick<BatchWorkRepository, 'end' | 'toSend'>;
  queue: Pick<BatchQueue, 'waiting'>;
  principals: Pick<PrincipalRepository, 'findByKey'>;
  lines: Pick<ReadLines, 'more'>;
  sendLine: SendLine;
  watch: Pick<ProviderWatch, 'isDown' | 'takeProbe'>;
  clock: Clock;
}

/** Rejects where another process may have led meanwhile. */
export type KeepLead = () => Promise<void>;

/** Enough for the fleet until the next round, few enough that a tenant who comes later need not wait behind them. */
const WAITING_MAX = 128;
/** How long what a key may do is taken as read; a revocation and a suspension are known to admission at once. */
const SENDER_MS = 2_000;
/** Lines of one tenant that are sent at once before it is the next one's turn. */
const SLICE = 8;

/**
 * What a refused line has taken of MongoDB and of this process to be read: a tenant without credits may have thousands of
 * megabytes. Its lines rest meanwhile; a request that is known to be large is read alone.
 */
const REFUSED_PER_MS = 2_000;
const LARGE = 1_000_000;

/** A line that has waited so long for its key's tokens has them kept (docs/decisions/0096-a-line-that-waits-has-tokens-kept.md). */
const OVERDUE_MS = 180_000;

const REVOKED: ErrorDetail = { code: 'invalid_api_key', message: 'The API key of this batch has been revoked.' };
const NOT_ALLOWED: ErrorDetail = {
  code: 'endpoint_not_allowed',
  message: 'The API key of this batch has no scope for chat any more.',
};
const EXPIRED: ErrorDetail = { code: 'expired_api_key', message: 'The API key of this batch has expired.' };

/** A line's row, and what the leader knows beside it. */
type ReadLine = SendableLine & OpenLine;

/** How many of the first lines are read at once. */
function readable(lines: readonly OpenLine[], count: number): number {
  let sum = 0;
  const over = lines.slice(0, count).findIndex(({ length = 0 }) => (sum += length) > LARGE);
  return over === -1 ? count : Math.max(1, over);
}

type Sender = { principal: Principal } | { fault: ErrorDetail };

/**
 * Sends lines while the queue has room, tenant by tenant in turn, so that a large batch does not keep others' out. A
 * tenant's batches are served oldest first; one that has to wait lets the next one go.
 */
export function createFillQueue({ work, queue, principals, lines, sendLine, watch, clock }: FillQueueDeps) {
  /** Whose turn it was last, by shard. */
  const lastServed = new Map<number, string>();
  const senders = new WeakMap<OpenBatch, { sender: Sender; until: number }>();
  /** Tenants that rest, and until when; by `performance.now`. */
  const resting = new Map<string, number>();

  function rest(tenantId: string, length: number): void {
    const now = performance.now();
    for (const [id, until] of resting) if (until <= now) resting.delete(id);
    resting.set(tenantId, (resting.get(tenantId) ?? now) + length / REFUSED_PER_MS);
  }

  async function lookUp({ row }: OpenBatch): Promise<Sender> {
    const principal = await principals.findByKey(row.tenantId, row.keyId);
    if (principal === undefined || principal.keyStatus === 'revoked') return { fault: REVOKED };
    if (principal.expiresAt !== undefined && principal.expiresAt <= clock.now()) return { fault: EXPIRED };
    if (!allowsScope(principal.scopes, 'chat')) return { fault: NOT_ALLOWED };
    return { principal };
  }

  async function senderOf(batch: OpenBatch): Promise<Sender> {
    const known = senders.get(batch);
    if (known !== undefined && known.until > performance.now()) return known.sender;
    const sender = await lookUp(batch);
    senders.set(batch, { sender, until: performance.now() + SENDER_MS });
    return sender;
  }

  /** `isFirst`: of the batch's lines that may be sent, so that tokens are kept for one line of it. */
  async function send(batch: OpenBatch, line: ReadLine, sender: Sender, isFirst: boolean): Promise<LineEnd[]> {
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
    rest(batch.row.tenantId, length);
    batch.refusedAt = performance.now();
    batch.waitingFor = sent.waitFor;
    batch.notBefore = Math.max(batch.notBefore, performance.now() + sent.ms);
    return [];
  }

  /** Sends up to `count` lines at once. */
  async function sendSlice(batch: OpenBatch, count: number, keepLead: KeepLead): Promise<void> {
    const { tenantId, _id: batchId } = batch.row;
    const sender = await senderOf(batch);
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
  }

  /** Lets lines go whose time has come: a next try, or a tier that is up again, or one line to find out. */
  function wake(batch: OpenBatch): void {
    const now = clock.now();
    const later: OpenLine[] = [];
    for (const line of batch.later) {
      const { tier, retry } = line;
      if (retry !== undefined && !isDue(retry, now)) later.push(line);
      else if (tier === undefined || !watch.isDown(tier)) batch.ready.push(line);
      else if (watch.takeProbe(tier)) batch.ready.push({ ...line, isProbe: true });
      else later.push(line);
    }
    if (later.length < batch.later.length) batch.ready.sort((one, other) => one.index - other.index);
    batch.later = later;
  }

  /**
   * The first batch of a tenant that may send something. One that was refused comes behind the others until one of these has
   * sent: the whole tenant rests behind a refusal, and at its end the same batch may be due again.
   */
  async function nextOf(batches: readonly OpenBatch[]): Promise<OpenBatch | undefined> {
    for (const batch of batches.toSorted((one, other) => one.refusedAt - other.refusedAt)) {
      if (batch.isClosed || batch.notBefore > performance.now()) continue;
      wake(batch);
      await lines.more(batch);
      if (batch.ready.length > 0) return batch;
    }
    return undefined;
  }

  /** Tenants in turn, beginning behind the one that was served last. */
  function inTurn(shard: number, batches: readonly OpenBatch[]): [string, OpenBatch[]][] {
    const byTenant = Map.groupBy(batches, ({ row }) => row.tenantId);
    const tenants = [...byTenant].sort(([one], [other]) => (one < other ? -1 : 1));
    const last = lastServed.get(shard) ?? '';
    const start = tenants.findIndex(([tenantId]) => tenantId > last);
    return start <= 0 ? tenants : [...tenants.slice(start), ...tenants.slice(0, start)];
  }

  return async (shard: number, batches: readonly OpenBatch[], keepLead: KeepLead): Promise<void> => {
    let room = WAITING_MAX - (await queue.waiting(shard));
    let turns = inTurn(shard, batches);
    while (room > 0 && turns.length > 0) {
      const left: typeof turns = [];
      for (const turn of turns) {
        const [tenantId, own] = turn;
        const rests = (resting.get(tenantId) ?? 0) > performance.now();
        const batch = room > 0 && !rests ? await nextOf(own) : undefined;
        if (batch === undefined) continue;
        const count = Math.min(SLICE, room);
        room -= count;
        await sendSlice(batch, count, keepLead);
        if (batch.refusedAt === 0) for (const other of own) other.refusedAt = 0;
        lastServed.set(shard, tenantId);
        left.push(turn);
      }
      turns = left;
    }
  };
}

export type FillQueue = ReturnType<typeof createFillQueue>;
