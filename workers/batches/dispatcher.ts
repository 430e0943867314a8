import { isEndedBatch } from '../../shared/contracts/batches.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { BATCH_LEASE } from '../../shared/infra/redis/requests/admit-call.ts';
import type { BatchRow } from '../../shared/infra/mongo/batches/batch-repository.ts';
import type { BatchWorkRepository } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import { isBadDocument } from '../../shared/infra/mongo/mongo-faults.ts';
import { isBadKey } from '../../shared/infra/redis/scripts.ts';
import type { BatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
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
  /** Redis came back a moment ago: workers may yet replay what it has lost. */
  hasReconnectedRecently: () => boolean;
  clock: Clock;
  log: Logger;
}

export interface Dispatcher {
  /** One round; returns how long to pause until the next one, in milliseconds. */
  dispatchShard(shard: number): Promise<number>;
  release(shard: number): Promise<void>;
}

/** The lease ran out during a round, or Redis did: what is known may be another process's to know, or be no more. */
class LeadLost extends Error {
  override readonly name = 'LeadLost';
}

/** While lines run, and while there is nothing to do. */
const BUSY_MS = 100;
const IDLE_MS = 1_000;
/** How old what is known of the shard's batches may be: a cancel is heard within that time. */
const ROWS_MS = 500;
/** The pause after a fault of one batch. */
const REST_MS = 5_000;
/** An upload that takes longer has lost its ingress: a request has five minutes to arrive. */
const UPLOAD_MAX_MS = 600_000;

/** Something that the batch has in a store is at fault, and no store. */
function isOwnFault(error: unknown): boolean {
  const isUnreadable = error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError;
  return isUnreadable || isBadKey(error) || isBadDocument(error);
}

interface ShardBatches {
  open: Map<string, OpenBatch>;
  /** Batches that have failed, and until when they rest; as `readAt` by `performance.now`, which nobody can put back. */
  resting: Map<string, number>;
  readAt: number;
}

/** Not yet, or once more. */
const NEVER = -Infinity;

/**
 * Runs the batches of a shard: sends their lines, brings the answers into their results, ends them. One process of the
 * fleet does so; what it knows can be read again, so a leader that dies costs no line and runs none twice.
 */
export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { work, fillQueue, collectEnds, closeBatch, queue, watch, leases, hasReconnectedRecently, clock, log } = deps;
  const shards = new Map<number, ShardBatches>();

  async function take(state: ShardBatches, row: BatchRow): Promise<void> {
    const { _id: batchId, tenantId, shard, status } = row;
    const known = state.open.get(batchId);
    if (known !== undefined) {
      known.row = row;
      return;
    }
    // A Redis that is full takes nothing new. The other batches go on, and this one is looked at again with the next rows.
    const fate = await queue.decide(shard, batchId, 'running').catch(() => undefined);
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

  /** Does something for one batch, unless it rests. What is at fault in one keeps no other waiting. */
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

  /** Nothing is sent but lines that find out whether their tier answers, or nothing at all before the next try. */
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
    // The next leader tells only what changes: it would not put this right.
    await keepLead();
    await work.note(row.tenantId, row._id, state);
    batch.noted = text;
  }

  async function round(shard: number, state: ShardBatches): Promise<void> {
    const keepLead = async () => {
      if (!(await leases.renew(shard, BATCH_LEASE))) throw new LeadLost('The lease ran out');
      // The round may have begun before: it would send once more, or end, what has an answer that is about to be put back.
      if (hasReconnectedRecently()) throw new LeadLost('Redis was away');
    };
    await refresh(shard, state);
    for (const [batchId, batch] of state.open)
      await doFor(state, batchId, async () => {
        await keepLead();
        await collectEnds(batch);
        if (!(await closeBatch.closeIfDue(batch, keepLead))) return;
        state.open.delete(batchId);
        // The event of its end is published at once.
        state.readAt = NEVER;
      });
    const batches = [...state.open.values()].filter(({ row }) => !rests(state, row._id));
    await fillQueue(shard, batches, keepLead);
    for (const batch of batches) await note(batch, keepLead);
  }

  /** What is known of the shard while this process leads it without a break; undefined: another one leads. */
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
        // Some lines may be half sent: what is known is read again.
        for (const batch of state.open.values()) rewind(batch);
        throw error;
      }
      return state.open.size > 0 || state.readAt === NEVER ? BUSY_MS : IDLE_MS;
    },
    release: (shard) => leases.release(shard, BATCH_LEASE),
  };
}
