/**
 * Runs a worker's tasks for each shard: two queues, settlement, sweep, batches, notices and reconciliation. A shard is
 * a hash tag that all keys of its tenants carry (docs/decisions/0002-tenant-shards.md). Every worker serves all shards
 * that have tenants; one worker leads settlement, sweep, batches and notices, by a lease of 5 s.
 */
import type { Logger } from '../shared/logging/logger.ts';
import type { ShardDirectory } from '../shared/mongo/tenants/tenant-repository.ts';
import { inTime } from '../shared/redis/time-limits.ts';
import { repeat } from '../shared/lifecycle/clock.ts';
import type { Repeating } from '../shared/lifecycle/clock.ts';
import type { Dispatcher } from './batches/dispatcher.ts';
import type { InferenceWorker } from './queue/inference.ts';
import { SETTLE_BATCH } from './settlement/settle.ts';
import type { Settler } from './settlement/settle.ts';
import type { Sweep } from './settlement/sweep.ts';

export interface ShardSupervisorDeps {
  directory: ShardDirectory;
  settler: Settler;
  sweep: Sweep;
  /** Learns for how long the shard's Redis has had its data: workers wait where it is back just now. */
  meet: (shard: number) => Promise<void>;
  listen: (shard: number) => Promise<void>;
  /** One worker for each queue. */
  openWorkers: (shard: number) => InferenceWorker[];
  dispatcher: Dispatcher;
  reconcile: (shard: number) => Promise<void>;
  publishNotices: (shard: number) => Promise<void>;
  measureOutbox: (shard: number) => Promise<void>;
  /** True while the shard's Redis is away, and within this time after its return. */
  hasReconnectedRecently: (shard: number, withinMs: number) => boolean;
  log: Logger;
}

export type ShardSupervisor = ReturnType<typeof createShardSupervisor>;

/** The list of shards is read this often, because a new tenant may be on a shard that no worker serves. */
const DIRECTORY_MS = 2_000;
const SWEEP_MS = 2_000;
const NOTICES_MS = 500;
const DISPATCH_AGAIN_MS = 1_000;
/** Records gather for this time: half of a transaction's cost does not depend on their number. */
const SETTLE_MS = 150;
/** More may gather after a round of this many: nobody waits for the ledger balance, as Redis has what limits need. */
const SETTLE_BUSY = 50;
const SETTLE_BUSY_MS = 300;
/** The pause after a failed round, as a MongoDB that refuses everything refuses at once. */
const SETTLE_AGAIN_MS = 1_000;
/** A worker checks this often whether a shard's hourly reconciliation is due. */
const RECONCILE_LOOK_MS = 30_000;
/** Three canaries may get lost. */
const QUIET_MAX_MS = 45_000;
/** After a return of Redis the second canary comes through at the latest. */
const CANARY_BACK_MS = 20_000;

/** `read`: how many records the last round read; undefined: it failed. */
function settlePauseMs(read: number | undefined): number {
  if (read === undefined) return SETTLE_AGAIN_MS;
  if (read >= SETTLE_BATCH) return 0;
  return read < SETTLE_BUSY ? SETTLE_MS : SETTLE_BUSY_MS;
}

const warnWith = (log: Logger) => (what: string, shard: number) => (error: unknown) => {
  log.warn(`${what} failed; the next round tries again.`, { shard, error });
};

function startTasks(deps: ShardSupervisorDeps, shard: number) {
  const { openWorkers, dispatcher, settler, sweep, publishNotices, measureOutbox, reconcile, log } = deps;
  const warn = warnWith(log);
  return {
    workers: openWorkers(shard),
    dispatching: repeat(
      () => dispatcher.dispatchShard(shard),
      (pauseMs = DISPATCH_AGAIN_MS) => pauseMs,
      warn('Running batches', shard),
    ),
    settling: repeat(() => settler.settleShard(shard), settlePauseMs, warn('Settlement', shard)),
    sweeping: repeat(
      () => sweep.sweepShard(shard),
      () => SWEEP_MS,
      warn('The sweep', shard),
    ),
    publishing: repeat(
      () => publishNotices(shard),
      () => NOTICES_MS,
      warn('Publishing events of ended requests', shard),
    ),
    watching: repeat(
      () => measureOutbox(shard),
      () => SWEEP_MS,
      warn('Reading the outbox length', shard),
    ),
    reconciling: repeat(
      () => reconcile(shard),
      () => RECONCILE_LOOK_MS,
      warn('Reconciliation', shard),
    ),
  };
}

type Tasks = ReturnType<typeof startTasks>;

export function createShardSupervisor(deps: ShardSupervisorDeps) {
  const { directory, settler, sweep, dispatcher, listen, hasReconnectedRecently, meet, log } = deps;
  const warn = warnWith(log);
  const shards = new Map<number, Tasks>();
  let directoryWatch: Repeating | undefined;
  let isDraining = false;

  async function open(shard: number): Promise<void> {
    // A time that is not learnt in time counts as just now.
    await inTime(meet(shard)).catch(() => undefined);
    log.info('A shard is served.', { shard });
    listen(shard).catch(warn('Listening for cancelled requests', shard));
    shards.set(shard, startTasks(deps, shard));
  }

  /** Resolves when the last request has ended. */
  async function drain(shard: number, { workers, sweeping, dispatching }: Tasks): Promise<void> {
    void sweeping.stop();
    void dispatching.stop();
    await Promise.all(workers.map((worker) => worker.drain()));
    await sweep.idle();
    log.info('No request runs any more.', { shard });
  }

  /** Settlement has gone on until the last request ended; it runs once more for what that left. */
  async function endTasks(shard: number, { workers, ...tasks }: Tasks): Promise<void> {
    await Promise.all([...workers.map((worker) => worker.close()), ...Object.values(tasks).map((task) => task.stop())]);
    await dispatcher.release(shard).catch(warn('Giving up batches', shard));
    await sweep.release(shard).catch(warn('Giving up the sweep', shard));
    await settler.settleShard(shard).catch(warn('Settlement', shard));
    await settler.release(shard).catch(warn('Giving up settlement', shard));
  }

  async function serveAll(): Promise<void> {
    const wanted = await directory.list();
    for (const shard of wanted) if (!shards.has(shard)) await open(shard);
  }

  return {
    async start(): Promise<void> {
      await serveAll();
      directoryWatch = repeat(
        serveAll,
        () => DIRECTORY_MS,
        (error) => {
          log.warn('The list of shards could not be read; the known ones stay served.', { error });
        },
      );
    },

    /** Rejects when a shard's worker has taken nothing for too long, unless it drains. */
    assertWorking(): Promise<void> {
      if (isDraining) return Promise.resolve();
      for (const [shard, { workers }] of shards) {
        const quietMs = Math.max(...workers.map((worker) => worker.quietMs()));
        // Without the shard's Redis nobody is given anything, and the worker of the other shards works.
        if (quietMs > QUIET_MAX_MS && !hasReconnectedRecently(shard, CANARY_BACK_MS))
          return Promise.reject(new Error(`shard ${shard} has taken nothing for ${Math.round(quietMs / 1000)} s`));
      }
      return Promise.resolve();
    },

    running: (): number =>
      [...shards.values()].flatMap(({ workers }) => workers).reduce((sum, each) => sum + each.running(), 0),

    /** Takes no more requests. Resolves when the last one has ended, whether Redis is reachable or not. */
    async drain(): Promise<void> {
      isDraining = true;
      await directoryWatch?.stop();
      await Promise.all([...shards].map(([shard, tasks]) => drain(shard, tasks)));
    },

    /** Settles what is left and gives up all tasks. Needs Redis. */
    async close(): Promise<void> {
      await Promise.all([...shards].map(([shard, tasks]) => endTasks(shard, tasks)));
    },
  };
}
