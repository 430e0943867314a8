import { performance } from 'node:perf_hooks';

import type { QueueName } from '../../shared/contracts/jobs.ts';
import type { WorkerParts } from '../pipeline/worker-parts.ts';
import { createInferenceWorker } from './inference.ts';
import type { InferenceDeps, InferenceWorker } from './inference.ts';

interface YieldingQueues {
  batch: InferenceWorker;
  interactive: InferenceWorker;
}

interface BatchConcurrencyOptions {
  /** Total places of the batch queues of all shards. */
  max: number;
  /** Load of the process since the last call, from 0 to 1. */
  busy?: () => number;
}

const LOOK_MS = 100;
/** Limits while only batches run: they may use up the process, except for what the renewal of leases needs. */
const ALONE = { busyMin: 0.8, busyMax: 0.9, more: 4, less: 0.7 } as const;
/** Limits while a caller waits for other requests: quick to yield, slow to come back. */
const SHARED = { busyMin: 0.45, busyMax: 0.6, more: 1, less: 0.5 } as const;
/** A queue counts as idle once it has had no request for this long. */
const GONE_MS = 2_000;
/** The rate that batches always get, however busy the machine is: some 10 % of a core. */
const LINES_PER_SECOND_MIN = 20;

interface ProcessLoad {
  /** From 0 to 1. */
  busy: number;
  /** Requests that somebody waits for are running as well. */
  isShared: boolean;
  /** A line takes so long; milliseconds. */
  meanMs: number;
}

/**
 * Returns the batch lines that a worker runs at once: up to `max` while its event loop has time to spare, fewer while
 * other requests need it, and never so few that fewer than 20 lines per second would end.
 */
export function nextPlaces(places: number, { busy, isShared, meanMs }: ProcessLoad, max: number): number {
  const { busyMin, busyMax, more, less } = isShared ? SHARED : ALONE;
  // Little's law: the number running is the number per second times the duration of each.
  const least = Math.min(max, Math.max(1, Math.ceil((LINES_PER_SECOND_MIN * meanMs) / 1_000)));
  if (busy > busyMax) return Math.max(least, Math.floor(places * less));
  return Math.max(least, busy < busyMin ? Math.min(max, places + more) : places);
}

/** Shards with running lines share the places; an idle one keeps one, so that its first line starts at once. */
export function placesOf(places: number, areIdle: readonly boolean[]): number[] {
  const idle = areIdle.filter((isIdle) => isIdle).length;
  const busy = areIdle.length - idle;
  const each = busy === 0 ? places / idle : (places - idle) / busy;
  return areIdle.map((isIdle) => Math.max(1, isIdle && busy > 0 ? 1 : Math.floor(each)));
}

function createMeter(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}

function createBatchConcurrency({ max, busy = createMeter() }: BatchConcurrencyOptions) {
  const shards: YieldingQueues[] = [];
  // Starts at the maximum, so that the first lines do not wait.
  let places = max;

  function look(): void {
    const isShared = shards.some(({ interactive }) => interactive.idleMs() < GONE_MS);
    const meanMs = Math.max(0, ...shards.map(({ batch }) => batch.meanMs()));
    places = nextPlaces(places, { busy: busy(), isShared, meanMs }, max);
    const shares = placesOf(
      places,
      shards.map(({ batch }) => batch.idleMs() > GONE_MS),
    );
    for (const [index, { batch }] of shards.entries()) batch.concurrency = shares[index] ?? 1;
  }
  const timer = setInterval(look, LOOK_MS);
  timer.unref();

  return {
    add: (queues: YieldingQueues): void => {
      shards.push(queues);
    },
    stop: (): void => {
      clearInterval(timer);
    },
  };
}

export type OpenQueueWorkers = (shard: number) => InferenceWorker[];

/** Shards are added while the process runs; its interactive concurrency is divided among all of them. */
export function createOpenQueueWorkers(
  parts: WorkerParts,
  running: Pick<InferenceDeps, 'runPipeline' | 'claims' | 'onLockLost' | 'path'>,
): OpenQueueWorkers {
  const { config, redis, queues, capacities, closer } = parts;
  const { concurrency, batchConcurrency: batchPlaces } = config.worker;
  const interactives: InferenceWorker[] = [];
  const batchConcurrency = createBatchConcurrency({ max: batchPlaces });
  closer.defer('batch concurrency', () => {
    batchConcurrency.stop();
  });

  const open = (shard: number, queueName: QueueName, places: number) =>
    createInferenceWorker({
      ...parts,
      ...running,
      client: redis,
      shard,
      concurrency: places,
      queueName,
      queue: queues.queue(shard, queueName),
      room: capacities.roomOf(queueName),
      completedKept: config.queue.completedKept,
    });

  return (shard) => {
    const interactive = open(shard, 'interactive', concurrency);
    interactives.push(interactive);
    const places = Math.max(1, Math.floor(concurrency / interactives.length));
    for (const each of interactives) each.concurrency = places;
    const batch = open(shard, 'batch', batchPlaces);
    batchConcurrency.add({ interactive, batch });
    return [interactive, batch];
  };
}
