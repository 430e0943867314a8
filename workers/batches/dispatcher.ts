import { isEndedBatch } from '../../shared/contracts/batches.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { BATCH_LEASE } from '../../shared/infra/redis/requests/admit-call.ts';
import type { BatchRow } from '../../shared/infra/mongo/batches/batch-repository.ts';
import type { BatchWorkRepository } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import { isBadDocument } from '../../shared/infra/mongo/mongo-faults.ts';
import { isBadKey } from '../../shared/infra/redis/scripts.ts';
import type { BatchFate, BatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { CloseBatch } from './close-batch.ts';
import type { CollectEnds } from './collect-ends.ts';
import type { FillQueue } from './fill-queue.ts';
import { openBatch, rewind } from './open-batch.ts';
import type { OpenBatch } from './open-batch.ts';
import type { ProviderWatch } from './provider-watch.ts';
import type { KeepLead } from './send-slice.ts';

export interface DispatcherDeps {
  work: Pick<BatchWorkRepository, 'open' | 'count' | 'note' | 'abandon'>;
  fillQueue: FillQueue;
  collectEnds: CollectEnds;
  closeBatch: CloseBatch;
  queue: Pick<BatchQueue, 'decide'>;
  watch: Pick<ProviderWatch, 'isDown'>;
  leases: Pick<LeaderLease, 'hold' | 'renew' | 'release'>;
  /** Redis came back a moment ago, and workers may still be replaying what it had lost. */
  hasReconnectedRecently: () => boolean;
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
/** How often the rows of the shard's batches are read, and so the delay of a cancellation. */
const ROWS_MS = 500;
/** How long a batch rests after a fault of its own. */
const REST_MS = 5_000;
/** After this time an upload is taken as abandoned by a dead ingress; a request has five minutes to arrive. */
const UPLOAD_MAX_MS = 600_000;

/** Whether the batch's own stored data is at fault, and not the store. */
function isOwnFault(error: unknown): boolean {
  const isUnreadable = error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError;
  return isUnreadable || isBadKey(error) || isBadDocument(error);
}

interface ShardBatches {
  open: Map<string, OpenBatch>;
  /** Batches with a fault of their own, and until when they rest. Like `readAt` by `performance.now`, which is never set back. */
  resting: Map<string, number>;
  /** When the rows of the shard's batches were last read. */
  readAt: number;
}

/** The time of what has not happened, or is to happen again at once. */
const NEVER = -Infinity;

/**
 * Runs the batches of a shard, round by round: collects the answers of lines that have ended, ends batches, and sends further
 * lines. One process of the fleet does so, the shard's leader. All that it knows is read from the stores, so when it dies the
 * next leader goes on, and no line is lost or run twice.
 */
export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { work, fillQueue, collectEnds, closeBatch, queue, watch, leases, hasReconnectedRecently, clock, log } = deps;
  const shards = new Map<number, ShardBatches>();

  /** Undefined: Redis is full, or away. The other batches go on, and this one is looked at again with the next rows. */
  async function decide(shard: number, batchId: string): Promise<BatchFate | undefined> {
    return queue.decide(shard, batchId, 'running').catch((error: unknown) => {
      log.warn('A batch cannot be taken up yet.', { batchId, error });
      return undefined;
    });
  }

  async function take(state: ShardBatches, row: BatchRow): Promise<void> {
    const { _id: batchId, tenantId, shard, status } = row;
    const known = state.open.get(batchId);
    if (known !== undefined) {
      known.row = row;
      return;
    }
    // What has been decided need not be asked again: a Redis that is full would not answer, and its lines have to end.
    const fate = row.startedAt === undefined ? await decide(shard, batchId) : 'running';
    if (fate === 'refused') {
      // MongoDB went away as it started, and its caller was told that there is none.
      log.info('A batch that was refused is removed.', { batchId, tenantId });
      await work.abandon(tenantId, batchId, status, clock.now());
    } else if (fate === 'running') {
      log.info('A batch is taken up.', { batchId, tenantId, count: row.total });
      state.open.set(batchId, openBatch(row, await work.count(tenantId, batchId)));
    }
  }

  const rests = ({ resting }: ShardBatches, batchId: string) => (resting.get(batchId) ?? NEVER) > performance.now();

  /** Does something for one batch, unless it rests. A fault of the batch's own makes it rest and does not stop the others. */
  async function doFor(state: ShardBatches, batchId: string, act: () => Promise<void>): Promise<void> {
    if (rests(state, batchId)) return;
    try {
      await act();
    } catch (error) {
      if (!isOwnFault(error)) throw error;
      log.error('A batch cannot go on; it is tried again shortly.', { batchId, error });
      state.resting.set(batchId, performance.now() + REST_MS);
      const batch = state.open.get(batchId);
      if (batch !== undefined) rewind(batch);
    }
  }

  /** Looks for work: new batches, cancelled ones, ended ones whose event was not published. */
  async function refresh(shard: number, state: ShardBatches): Promise<void> {
    if (performance.now() - state.readAt < ROWS_MS) return;
    const rows = await work.open(shard);
    state.readAt = performance.now();
    const ids = new Set(rows.map(({ _id }) => _id));
    for (const known of [state.open, state.resting])
      for (const batchId of known.keys()) if (!ids.has(batchId)) known.delete(batchId);
    for (const row of rows) {
      if (row.status === 'validating') {
        if (clock.now() - row.createdAt > UPLOAD_MAX_MS)
          await work.abandon(row.tenantId, row._id, row.status, clock.now());
      } else if (isEndedBatch(row.status)) {
        state.open.delete(row._id);
        await doFor(state, row._id, () => closeBatch.publish({ row }));
      } else await take(state, row);
    }
  }

  /** Whether lines wait because their tier is down, or all lines that are left wait for their next try. */
  function waitsForProvider({ ready, later, inFlight }: OpenBatch): boolean {
    const isHeld = later.some(({ tier }) => tier !== undefined && watch.isDown(tier));
    return isHeld || (later.length > 0 && ready.length === 0 && inFlight.size === 0);
  }

  async function note(batch: OpenBatch, keepLead: KeepLead): Promise<void> {
    const { row, counts, inFlight } = batch;
    const waitingFor = batch.waitingFor ?? (waitsForProvider(batch) ? 'provider' : null);
    const hasBegun = inFlight.size > 0 || counts.completed > 0;
    const startedAt = row.startedAt ?? (hasBegun ? clock.now() : undefined);
    const state = { ...counts, waitingFor, ...(startedAt === undefined ? {} : { startedAt }) };
    const text = JSON.stringify({ ...counts, waitingFor, hasBegun });
    if (text === batch.noted) return;
    // A state written by a former leader would stay wrong: the present one writes changes only.
    await keepLead();
    await work.note(row.tenantId, row._id, state);
    batch.noted = text;
  }

  async function round(shard: number, state: ShardBatches): Promise<void> {
    const keepLead = async () => {
      if (!(await leases.renew(shard, BATCH_LEASE))) throw new LeadLost('The lease ran out');
      // An answer that is about to be replayed would be taken as lost: its line would be sent again, or ended without it.
      if (hasReconnectedRecently()) throw new LeadLost('Redis was away');
    };
    await refresh(shard, state);
    for (const [batchId, batch] of state.open)
      await doFor(state, batchId, async () => {
        await keepLead();
        await collectEnds(batch);
        if (!(await closeBatch.closeIfDue(batch, keepLead))) return;
        state.open.delete(batchId);
        // The next round reads the rows again, and publishes the event of the batch's end.
        state.readAt = NEVER;
      });
    const batches = [...state.open.values()].filter(({ row }) => !rests(state, row._id));
    await fillQueue(shard, batches, keepLead);
    for (const batch of batches) await note(batch, keepLead);
  }

  /** What this process knows of the shard, from the time since when it has led without a break. Undefined: another one leads. */
  async function lead(shard: number): Promise<ShardBatches | undefined> {
    const known = shards.get(shard);
    if (known !== undefined && (await leases.renew(shard, BATCH_LEASE))) return known;
    shards.delete(shard);
    if (!(await leases.hold(shard, BATCH_LEASE))) return undefined;
    const state = { open: new Map<string, OpenBatch>(), resting: new Map<string, number>(), readAt: NEVER };
    shards.set(shard, state);
    return state;
  }

  return {
    async dispatchShard(shard) {
      if (hasReconnectedRecently()) return IDLE_MS;
      const state = await lead(shard);
      if (state === undefined) return IDLE_MS;
      try {
        await round(shard, state);
      } catch (error) {
        if (error instanceof LeadLost) {
          shards.delete(shard);
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
