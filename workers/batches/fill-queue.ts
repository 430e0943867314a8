import type { PrincipalRepository } from '../../shared/mongo/tenants/principal-repository.ts';
import { createFindSender } from './send-line.ts';
import type { SendLineDeps } from './send-line.ts';
import { advance, readyLines } from './open-batch.ts';
import type { OpenBatch } from './open-batch.ts';
import type { ReadLines, KeepLead, SendSliceDeps } from './send-slice.ts';
import { createSendSlice } from './send-slice.ts';

export interface FillQueueDeps extends Omit<SendSliceDeps, 'findSender' | 'onRefused'> {
  countWaiting: (shard: number) => Promise<number>;
  principals: Pick<PrincipalRepository, 'findByKey'>;
  lines: Pick<ReadLines, 'more'>;
  watch: SendLineDeps['watch'];
}

/** Jobs kept waiting in the queue: enough for the fleet until the next round, few enough not to delay a later tenant. */
const WAITING_MAX = 128;
/** Lines whose tier is up again that become ready at once. */
const WOKEN = 100;
/** Lines of a tenant that are sent before it is the next tenant's turn. */
const SLICE = 8;

/**
 * A refused tenant's lines rest for one millisecond per so many bytes of the refused line: reading lines costs MongoDB
 * and this process time, and a tenant without credits may have gigabytes of them.
 */
const REFUSED_PER_MS = 2_000;

/** Tenants' lines rest after a refusal until this time (`performance.now`). */
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

/** The turns begin behind the tenant that was served last. */
function inTurn(last: string, batches: readonly OpenBatch[]): [string, OpenBatch[]][] {
  const byTenant = Map.groupBy(batches, ({ row }) => row.tenantId);
  const tenants = [...byTenant].sort(([one], [other]) => (one < other ? -1 : 1));
  const start = tenants.findIndex(([tenantId]) => tenantId > last);
  return start <= 0 ? tenants : [...tenants.slice(start), ...tenants.slice(0, start)];
}

/**
 * Sends lines while the queue has room, a slice of each tenant in turn, so that a large batch keeps no other tenant
 * waiting. A tenant's batches are served oldest first; one that has to wait is passed over.
 */
export function createFillQueue(deps: FillQueueDeps) {
  const { countWaiting, principals, lines, watch, clock } = deps;
  /** The tenant that was served last, by shard. */
  const lastServed = new Map<number, string>();
  const resting = createRest();
  const sendSlice = createSendSlice({
    ...deps,
    findSender: createFindSender(principals, clock),
    onRefused: resting.add,
  });

  /** Lets held lines go whose tier is up again, or one that is to find out whether it is. */
  function wake(batch: OpenBatch): void {
    for (const tier of batch.lines.held.keys()) {
      const isProbe = watch.isDown(tier);
      const room = WOKEN - readyLines(batch, clock.now()).length;
      const count = isProbe ? Number(watch.takeProbe(tier)) : Math.max(0, room);
      if (count > 0) advance(batch, { kind: 'woken', tier, count, isProbe });
    }
  }

  /**
   * Finds a tenant's first batch with a line to send. One whose line was refused comes behind the others until one of
   * those has sent; else it would be first each time the tenant's rest is over, and the others never sent.
   */
  async function nextOf(batches: readonly OpenBatch[]): Promise<OpenBatch | undefined> {
    for (const batch of batches.toSorted((one, other) => one.lines.refusedAt - other.lines.refusedAt)) {
      if (batch.isClosed || batch.lines.notBefore > performance.now()) continue;
      wake(batch);
      await lines.more(batch);
      if (readyLines(batch, clock.now()).length > 0) return batch;
    }
    return undefined;
  }

  return async (shard: number, batches: readonly OpenBatch[], keepLead: KeepLead): Promise<void> => {
    let room = WAITING_MAX - (await countWaiting(shard));
    let turns = inTurn(lastServed.get(shard) ?? '', batches);
    while (room > 0 && turns.length > 0) {
      const left: typeof turns = [];
      for (const turn of turns) {
        const [tenantId, own] = turn;
        const batch = room > 0 && !resting.has(tenantId) ? await nextOf(own) : undefined;
        if (batch === undefined) continue;
        const count = Math.min(SLICE, room);
        room -= count;
        await sendSlice(batch, count, keepLead);
        if (batch.lines.refusedAt === 0) for (const other of own) advance(other, { kind: 'served' });
        lastServed.set(shard, tenantId);
        left.push(turn);
      }
      turns = left;
    }
  };
}

export type FillQueue = ReturnType<typeof createFillQueue>;
