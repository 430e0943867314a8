/**
 * The door of batches: runs the stored lines of a shard's batches. An upload (api/resources/batches) stores each
 * request as a line, or as its error, in groups; one update starts the batch once all of it is stored.
 *
 * One worker leads, with ten rounds a second while there are batches. It reads all that it knows from the stores, so
 * the next leader goes on where it died, no line is lost or run twice, and every step may be repeated:
 *
 * 1. It takes up new batches and reads their open lines, a page at a time (send-slice.ts). Lines whose request Redis
 *    knows are in flight.
 * 2. It keeps up to 128 jobs waiting in the queue `batch`, eight lines of each tenant in turn (fill-queue.ts). A line
 *    is admitted like every request (send-line.ts), without requests per minute and with 80 % of the tokens per minute.
 *    A refusal that passes by itself makes the batch wait. Redis admits lines only for the leader, and none of a batch
 *    that is being ended.
 * 3. It brings answers from Redis into the lines, up to 50 at a time (collect-ends.ts). An answer that Redis lost is
 *    put back by its worker, or generated again under the same id, which the ledger charges once. A line that its
 *    provider failed without text is tried again as another request. Lines of a tier without a provider wait, and
 *    others pass them.
 * 4. It ends a batch whose lines have all ended, that was cancelled, or that is 24 hours old (close-batch.ts), and does
 *    so again whenever Redis returns.
 *
 * If MongoDB does not say whether a batch has started, Redis decides between the ingress that refuses it and the worker
 * that takes it up (docs/decisions/0016-batches.md).
 */
import { createDeletions } from '../../shared/erasure-gate.ts';
import { createBatchWorkRepository } from '../../shared/mongo/batches/batch-work-repository.ts';
import type { BatchWorkRepository } from '../../shared/mongo/batches/batch-work-repository.ts';
import { createPrincipalRepository } from '../../shared/mongo/tenants/principal-repository.ts';
import type { ChatQueues } from '../../shared/queue/queues.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import { BATCH_LEASE } from '../../shared/requests/admit-arguments.ts';
import { createAnswerCache } from '../../shared/requests/answers.ts';
import { createBatchQueue } from '../../shared/requests/queue-store.ts';
import type { EventSink } from '../../shared/webhooks/publish.ts';
import type { WorkerEventBus } from '../pipeline/worker-events.ts';
import { createCloseBatch } from './close-batch.ts';
import type { CloseBatch } from './close-batch.ts';
import { createCollectEnds } from './collect-ends.ts';
import type { CollectEnds } from './collect-ends.ts';
import { createFillQueue } from './fill-queue.ts';
import type { FillQueue } from './fill-queue.ts';
import { createFailedTries } from './line-state.ts';
import { advance, readyLines } from './open-batch.ts';
import type { OpenBatch } from './open-batch.ts';
import { createProviderWatch } from './provider-watch.ts';
import type { ProviderWatch, ProviderWatchDeps } from './provider-watch.ts';
import { openSendLine } from './send-line.ts';
import type { OpenSendLineDeps } from './send-line.ts';
import { createReadLines } from './send-slice.ts';
import type { KeepLead } from './send-slice.ts';
import { NEVER, createDoForBatch, createRefreshShard, emptyShard, isResting } from './shard-batches.ts';
import type { DoForBatch, RefreshShardDeps, ShardBatches } from './shard-batches.ts';

type RecordProgress = (batch: OpenBatch, keepLead: KeepLead) => Promise<void>;

function createRecordProgress({ work, watch, clock }: DispatcherDeps): RecordProgress {
  /** True if lines wait because their tier is down, or all lines that are left wait for their next try. */
  function waitsForProvider(batch: OpenBatch): boolean {
    const { waiting, held, inFlight } = batch.lines;
    if ([...held.keys()].some(watch.isDown)) return true;
    return waiting.length > 0 && inFlight.size === 0 && readyLines(batch, clock.now()).length === 0;
  }

  return async (batch, keepLead) => {
    const { row, counts, lines } = batch;
    const waitingFor = lines.waitingFor ?? (waitsForProvider(batch) ? 'provider' : null);
    const hasBegun = lines.inFlight.size > 0 || counts.completed > 0;
    const startedAt = row.startedAt ?? (hasBegun ? clock.now() : undefined);
    const state = { ...counts, waitingFor, ...(startedAt === undefined ? {} : { startedAt }) };
    const text = JSON.stringify({ ...counts, waitingFor, hasBegun });
    if (text === batch.noted) return;
    // A state written by a former leader would stay wrong: the present one writes changes only.
    await keepLead();
    await work.recordProgress(row.tenantId, row._id, state);
    batch.noted = text;
  };
}

export interface DispatcherDeps extends Omit<RefreshShardDeps, 'doForBatch'> {
  work: Pick<BatchWorkRepository, 'open' | 'count' | 'recordProgress' | 'removeUnstarted'>;
  fillQueue: FillQueue;
  collectEnds: CollectEnds;
  closeBatch: CloseBatch;
  watch: Pick<ProviderWatch, 'isDown'>;
  leases: Pick<LeaderLease, 'hold' | 'renew' | 'release'>;
  /** The shard's Redis came back a moment ago, and workers may still be replaying what it had lost. */
  hasReconnectedRecently: (shard: number, withinMs?: number) => boolean;
}

export type Dispatcher = ReturnType<typeof createDispatcher>;

/** Another process may have led meanwhile, or Redis may have lost data: all knowledge of the shard is void. */
class LeadLost extends Error {
  override readonly name = 'LeadLost';
}

/** Pauses between rounds: while there are batches, and while there are none. */
const BUSY_MS = 100;
const IDLE_MS = 1_000;

async function closeWhatHasEnded(
  doForBatch: DoForBatch,
  { collectEnds, closeBatch }: DispatcherDeps,
  state: ShardBatches,
  keepLead: KeepLead,
): Promise<void> {
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

function createLeads({ leases, hasReconnectedRecently }: DispatcherDeps) {
  const led = new Map<number, ShardBatches>();
  return {
    /** Undefined: another process leads. The view lasts for as long as this process leads without a break. */
    async take(shard: number): Promise<ShardBatches | undefined> {
      const known = led.get(shard);
      if (known !== undefined && (await leases.renew(shard, BATCH_LEASE))) return known;
      led.delete(shard);
      if (!(await leases.hold(shard, BATCH_LEASE))) return undefined;
      const state = emptyShard();
      led.set(shard, state);
      return state;
    },

    async assert(shard: number): Promise<void> {
      if (!(await leases.renew(shard, BATCH_LEASE))) throw new LeadLost('The lease ran out');
      // An answer that is about to be replayed would be taken as lost: its line would be sent again, or ended without it.
      if (hasReconnectedRecently(shard)) throw new LeadLost('Redis was away');
    },

    drop: (shard: number): void => void led.delete(shard),
    release: (shard: number): Promise<void> => leases.release(shard, BATCH_LEASE),
  };
}

export function createDispatcher(deps: DispatcherDeps) {
  const { fillQueue, hasReconnectedRecently } = deps;
  const doForBatch = createDoForBatch(deps.log);
  const refreshShard = createRefreshShard({ ...deps, doForBatch });
  const recordProgress = createRecordProgress(deps);
  const leads = createLeads(deps);

  async function round(shard: number, state: ShardBatches): Promise<void> {
    const keepLead = () => leads.assert(shard);
    await refreshShard(shard, state);
    await closeWhatHasEnded(doForBatch, deps, state, keepLead);
    const batches = [...state.open.values()].filter(({ row }) => !isResting(state, row._id));
    await fillQueue(shard, batches, keepLead);
    for (const batch of batches) await recordProgress(batch, keepLead);
  }

  return {
    /** Returns the milliseconds to pause until the next round. */
    async dispatchShard(shard: number): Promise<number> {
      if (hasReconnectedRecently(shard)) return IDLE_MS;
      const state = await leads.take(shard);
      if (state === undefined) return IDLE_MS;
      try {
        await round(shard, state);
      } catch (error) {
        if (error instanceof LeadLost) {
          leads.drop(shard);
          return IDLE_MS;
        }
        // The round broke off anywhere, for example between sending a line and noting that it was sent.
        for (const batch of state.open.values()) advance(batch, { kind: 'rewound' });
        throw error;
      }
      return state.open.size > 0 || state.readAt === NEVER ? BUSY_MS : IDLE_MS;
    },
    release: leads.release,
  };
}

interface OpenWatchDeps extends Omit<ProviderWatchDeps, 'now'> {
  telemetry: WorkerEventBus;
}

export interface OpenDispatcherDeps extends OpenSendLineDeps, Omit<OpenWatchDeps, 'routing'> {
  queues: ChatQueues;
  leases: LeaderLease;
  events: Pick<EventSink, 'publish'>;
  hasReconnectedRecently: (shard: number, withinMs?: number) => boolean;
  /** An answer is kept this long for its reader. */
  retentionMs: number;
}

function openProviderWatch({ routing, breakers, telemetry, log }: OpenWatchDeps): ProviderWatch {
  const watch = createProviderWatch({ routing, breakers, now: () => performance.now(), log });
  // The outcome of anybody's request to a provider counts for lines, too.
  telemetry.on('request.finished', ({ envelope, answer }) => {
    watch.recordEnd(envelope.tier, answer.trace, false);
  });
  return watch;
}

export function openDispatcher(deps: OpenDispatcherDeps): Dispatcher {
  const { mongo, redis, keyspace, queues } = deps;
  const queue = createBatchQueue(redis, keyspace);
  const parts = { ...deps, work: createBatchWorkRepository(mongo), queue, watch: openProviderWatch(deps) };
  const failedTries = createFailedTries(deps);
  const lines = createReadLines({ ...parts, failedTries });
  return createDispatcher({
    ...parts,
    fillQueue: createFillQueue({
      ...parts,
      countWaiting: (shard) => queues.queue(shard, 'batch').getJobCountByTypes('waiting', 'prioritized'),
      lines,
      principals: createPrincipalRepository(mongo),
      sendLine: openSendLine(deps, parts.watch),
      ...createDeletions(mongo, deps.pseudonyms),
    }),
    collectEnds: createCollectEnds({
      ...parts,
      lines,
      failedTries,
      answers: createAnswerCache(redis, keyspace),
      random: Math.random,
    }),
    closeBatch: createCloseBatch({ ...parts, lines }),
  });
}
