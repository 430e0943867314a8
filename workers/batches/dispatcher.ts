import type { Logger } from '../../shared/infra/logging/logger.ts';
import { BATCH_LEASE } from '../../shared/infra/redis/requests/admit-call.ts';
import type { BatchWorkRepository } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import type { BatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { CloseBatch } from './close-batch.ts';
import type { CollectEnds } from './collect-ends.ts';
import type { FillQueue } from './fill-queue.ts';
import { createNoteProgress } from './note-progress.ts';
import { rewind } from './open-batch.ts';
import type { ProviderWatch } from './provider-watch.ts';
import { createRefreshShard } from './refresh-shard.ts';
import type { KeepLead } from './send-slice.ts';
import { createDoForBatch, emptyShard, isResting, NEVER } from './shard-batches.ts';
import type { ShardBatches } from './shard-batches.ts';

export interface DispatcherDeps {
  work: Pick<BatchWorkRepository, 'open' | 'count' | 'noteProgress' | 'removeUnstarted'>;
  fillQueue: FillQueue;
  collectEnds: CollectEnds;
  closeBatch: CloseBatch;
  queue: Pick<BatchQueue, 'decide'>;
  watch: Pick<ProviderWatch, 'isDown'>;
  leases: Pick<LeaderLease, 'hold' | 'renew' | 'release'>;
  /** The shard's Redis came back a moment ago, and workers may still be replaying what it had lost. */
  hasReconnectedRecently: (shard: number) => boolean;
  clock: Clock;
  log: Logger;
}

export interface Dispatcher {
  /** One round; returns how long to pause until the next one, in milliseconds. */
  dispatchShard(shard: number): Promise<number>;
  release(shard: number): Promise<void>;
}

/** Another process may have led meanwhile, or Redis may have lost data: nothing that is known of the shard counts any more. */
class LeadLost extends Error {
  override readonly name = 'LeadLost';
}

/** Pauses between rounds: while there are batches, and while there are none. */
const BUSY_MS = 100;
const IDLE_MS = 1_000;

/**
 * Runs the batches of a shard, round by round: collects the answers of lines that have ended, ends batches, and sends further
 * lines. One process of the fleet does so, the shard's leader. All that it knows is read from the stores, so when it dies the
 * next leader goes on, and no line is lost or run twice.
 */
export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { fillQueue, collectEnds, closeBatch, leases, hasReconnectedRecently } = deps;
  const doForBatch = createDoForBatch(deps.log);
  const refreshShard = createRefreshShard({ ...deps, doForBatch });
  const noteProgress = createNoteProgress(deps);
  const led = new Map<number, ShardBatches>();

  /** What this process knows of the shard, from the time since when it has led without a break. Undefined: another one leads. */
  async function lead(shard: number): Promise<ShardBatches | undefined> {
    const known = led.get(shard);
    if (known !== undefined && (await leases.renew(shard, BATCH_LEASE))) return known;
    led.delete(shard);
    if (!(await leases.hold(shard, BATCH_LEASE))) return undefined;
    const state = emptyShard();
    led.set(shard, state);
    return state;
  }

  async function assertLead(shard: number): Promise<void> {
    if (!(await leases.renew(shard, BATCH_LEASE))) throw new LeadLost('The lease ran out');
    // An answer that is about to be replayed would be taken as lost: its line would be sent again, or ended without it.
    if (hasReconnectedRecently(shard)) throw new LeadLost('Redis was away');
  }

  async function closeWhatHasEnded(state: ShardBatches, keepLead: KeepLead): Promise<void> {
    for (const [batchId, batch] of state.open)
      await doForBatch(state, batchId, async () => {
        await keepLead();
        await collectEnds(batch);
        if (!(await closeBatch.closeIfDue(batch, keepLead))) return;
        state.open.delete(batchId);
        // The next round reads the rows again, and publishes the event of the batch's end.
        state.readAt = NEVER;
      });
  }

  async function round(shard: number, state: ShardBatches): Promise<void> {
    const keepLead = () => assertLead(shard);
    await refreshShard(shard, state);
    await closeWhatHasEnded(state, keepLead);
    const batches = [...state.open.values()].filter(({ row }) => !isResting(state, row._id));
    await fillQueue(shard, batches, keepLead);
    for (const batch of batches) await noteProgress(batch, keepLead);
  }

  return {
    async dispatchShard(shard) {
      if (hasReconnectedRecently(shard)) return IDLE_MS;
      const state = await lead(shard);
      if (state === undefined) return IDLE_MS;
      try {
        await round(shard, state);
      } catch (error) {
        if (error instanceof LeadLost) {
          led.delete(shard);
          return IDLE_MS;
        }
        // The round broke off anywhere, for example between sending a line and noting that it was sent.
        for (const batch of state.open.values()) rewind(batch);
        throw error;
      }
      return state.open.size > 0 || state.readAt === NEVER ? BUSY_MS : IDLE_MS;
    },
    release: (shard) => leases.release(shard, BATCH_LEASE),
  };
}
