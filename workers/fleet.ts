import type { Logger } from '../shared/infra/logging/logger.ts';
import type { ShardDirectory } from '../shared/infra/mongo/shard-directory.ts';
import { repeat } from '../shared/lifecycle/repeat.ts';
import type { Repeating } from '../shared/lifecycle/repeat.ts';
import type { InferenceWorker } from './processors/inference.ts';
import { SETTLE_BATCH } from './settlement/settle.ts';
import type { Settler } from './settlement/settle.ts';
import type { Sweep } from './sweep/sweep.ts';

export interface FleetDeps {
  directory: ShardDirectory;
  settler: Settler;
  sweep: Sweep;
  /** Hears what concerns the shard's requests. */
  listen: (shard: number) => Promise<void>;
  openWorker: (shard: number, shards: number) => InferenceWorker;
  reconcile: (shard: number) => Promise<void>;
  onOutboxLength: (shard: number) => Promise<void>;
  log: Logger;
}

export interface Fleet {
  start(): Promise<void>;
  /** Rejects when a shard's worker has taken nothing for too long. */
  assertWorking(): Promise<void>;
  /** Takes nothing new; resolves when the last request has ended, with Redis reachable or not. */
  drain(): Promise<void>;
  /** Settles what is left and gives every task up; needs Redis. */
  close(): Promise<void>;
}

/** A new tenant may be on a shard nobody serves yet. */
const DIRECTORY_MS = 2_000;
const SWEEP_MS = 2_000;
/** A transaction costs the same for one record as for a hundred, so under load they are left to gather. */
const SETTLE_MS = 150;
/** How often a shard's hourly reconciliation is thought of. */
const RECONCILE_LOOK_MS = 30_000;
/** Three canaries may go astray. */
const QUIET_MAX_MS = 45_000;

interface ShardTasks {
  worker: InferenceWorker;
  sweeping: Repeating;
  settling: Repeating;
  watching: Repeating;
  reconciling: Repeating;
}

/** Serves every shard that has tenants: its queue, its settlement, its sweep. */
export function createFleet(deps: FleetDeps): Fleet {
  const { directory, settler, sweep, reconcile, listen, openWorker, onOutboxLength, log } = deps;
  const shards = new Map<number, ShardTasks>();
  let directoryWatch: Repeating | undefined;

  const warn = (what: string, shard: number) => (error: unknown) => {
    log.warn(`${what} failed; the next round tries again.`, { shard, error });
  };

  function open(shard: number, count: number): void {
    log.info('A shard is served.', { shard });
    listen(shard).catch(warn('Listening for cancelled requests', shard));
    shards.set(shard, {
      worker: openWorker(shard, count),
      settling: repeat(
        () => settler.settleShard(shard),
        (read = 0) => (read < SETTLE_BATCH ? SETTLE_MS : 0),
        warn('Settlement', shard),
      ),
      sweeping: repeat(
        () => sweep.sweepShard(shard),
        () => SWEEP_MS,
        warn('The sweep', shard),
      ),
      watching: repeat(
        () => onOutboxLength(shard),
        () => SWEEP_MS,
        warn('Reading the outbox length', shard),
      ),
      reconciling: repeat(
        () => reconcile(shard),
        () => RECONCILE_LOOK_MS,
        warn('Reconciliation', shard),
      ),
    });
  }

  /** Nothing new is taken; resolves when the last request has ended. */
  async function drain(shard: number, { worker, sweeping }: ShardTasks): Promise<void> {
    void sweeping.stop();
    await worker.drain();
    await sweep.idle();
    log.info('No request runs any more.', { shard });
  }

  /** Settlement goes on until the last request has finished, then once more for what that left. */
  async function endTasks(
    shard: number,
    { worker, sweeping, settling, watching, reconciling }: ShardTasks,
  ): Promise<void> {
    await Promise.all([worker.close(), sweeping.stop(), settling.stop(), watching.stop(), reconciling.stop()]);
    await sweep.release(shard).catch(warn('Giving up the sweep', shard));
    await settler.settleShard(shard).catch(warn('Settlement', shard));
    await settler.release(shard).catch(warn('Giving up settlement', shard));
  }

  async function serveAll(): Promise<void> {
    const wanted = await directory.list();
    for (const shard of wanted) if (!shards.has(shard)) open(shard, wanted.length);
  }

  return {
    async start() {
      await serveAll();
      directoryWatch = repeat(
        serveAll,
        () => DIRECTORY_MS,
        (error) => {
          log.warn('The list of shards could not be read; the known ones stay served.', { error });
        },
      );
    },

    assertWorking() {
      for (const [shard, { worker }] of shards) {
        const quietMs = worker.quietMs();
        if (quietMs > QUIET_MAX_MS)
          return Promise.reject(new Error(`shard ${shard} has taken nothing for ${Math.round(quietMs / 1000)} s`));
      }
      return Promise.resolve();
    },

    async drain() {
      await directoryWatch?.stop();
      await Promise.all([...shards].map(([shard, tasks]) => drain(shard, tasks)));
    },

    async close() {
      await Promise.all([...shards].map(([shard, tasks]) => endTasks(shard, tasks)));
    },
  };
}
