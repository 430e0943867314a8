import type { PrincipalRepository } from '../../shared/infra/mongo/tenants/principal-repository.ts';
import type { BatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { isDue } from './line-retry.ts';
import { createFindSender } from './line-sender.ts';
import type { OpenBatch, OpenLine } from './open-batch.ts';
import type { ProviderWatch } from './provider-watch.ts';
import type { ReadLines } from './read-lines.ts';
import { createSendSlice } from './send-slice.ts';
import type { KeepLead, SendSliceDeps } from './send-slice.ts';

export interface FillQueueDeps extends Pick<SendSliceDeps, 'work' | 'sendLine'> {
  queue: Pick<BatchQueue, 'waiting'>;
  principals: Pick<PrincipalRepository, 'findByKey'>;
  lines: Pick<ReadLines, 'more'>;
  watch: Pick<ProviderWatch, 'isDown' | 'takeProbe'>;
  clock: Clock;
}

/** Enough for the fleet until the next round, few enough that a tenant who comes later need not wait behind them. */
const WAITING_MAX = 128;
/** Lines of one tenant that are sent at once before it is the next one's turn. */
const SLICE = 8;

/**
 * Bytes a millisecond. Reading a refused line costs MongoDB and this process time, and a tenant without credits may have
 * gigabytes of lines, so they rest for as long as the length of what was refused takes.
 */
const REFUSED_PER_MS = 2_000;

/** Tenants whose lines rest behind a refusal; times are of `performance.now`. */
function createRest() {
  const until = new Map<string, number>();
  return {
    add(tenantId: string, length: number): void {
      const now = performance.now();
      for (const [id, end] of until) if (end <= now) until.delete(id);
      until.set(tenantId, (until.get(tenantId) ?? now) + length / REFUSED_PER_MS);
    },
    has: (tenantId: string) => (until.get(tenantId) ?? 0) > performance.now(),
  };
}

/**
 * Sends lines while the queue has room, tenant by tenant in turn, so that a large batch does not keep others' out. A
 * tenant's batches are served oldest first; one that has to wait lets the next one go.
 */
export function createFillQueue({ work, queue, principals, lines, sendLine, watch, clock }: FillQueueDeps) {
  /** Whose turn it was last, by shard. */
  const lastServed = new Map<number, string>();
  const resting = createRest();
  const sendSlice = createSendSlice({
    work,
    findSender: createFindSender(principals, clock),
    sendLine,
    onRefused: resting.add,
  });

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
        const batch = room > 0 && !resting.has(tenantId) ? await nextOf(own) : undefined;
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
