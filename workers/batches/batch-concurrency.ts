import { performance } from 'node:perf_hooks';

import type { InferenceWorker } from '../processors/inference.ts';

/** A shard's queue of batches, and the queue that it yields to. */
interface YieldingQueues {
  batch: Pick<InferenceWorker, 'concurrency' | 'meanMs' | 'idleMs'>;
  interactive: Pick<InferenceWorker, 'idleMs'>;
}

export interface BatchConcurrency {
  add(queues: YieldingQueues): void;
  stop(): void;
}

export interface BatchConcurrencyOptions {
  /** Places of all shards' queues of batches together. */
  max: number;
  /** How busy the process was since the last call, from 0 to 1. */
  busy?: () => number;
}

const LOOK_MS = 100;
/** Nobody waits for anything else: the process may be used up, but for what keeps its requests its own. */
const ALONE = { busyMin: 0.8, busyMax: 0.9, more: 4, less: 0.7 } as const;
/** Somebody does: quick to yield, slow to come back. */
const SHARED = { busyMin: 0.45, busyMax: 0.6, more: 1, less: 0.5 } as const;
/** A caller who comes back within that time has not gone. */
const GONE_MS = 2_000;
/** What batches are never kept from, however busy the machine is: some 10 % of a core. */
const LINES_PER_SECOND_MIN = 20;

export interface ProcessLoad {
  /** How busy the process is, from 0 to 1. */
  busy: number;
  /** Requests that somebody waits for run beside. */
  isShared: boolean;
  /** How long a line takes; milliseconds. */
  meanMs: number;
}

/**
 * How many lines of batches a worker runs at once: as many as it is allowed to while its event loop has time to spare,
 * fewer while other requests need it, and never so few that lines would come to an end slower than 20 a second.
 */
export function nextPlaces(places: number, { busy, isShared, meanMs }: ProcessLoad, max: number): number {
  const { busyMin, busyMax, more, less } = isShared ? SHARED : ALONE;
  // Little's law: how many run is how many come a second times how long each takes.
  const least = Math.min(max, Math.max(1, Math.ceil((LINES_PER_SECOND_MIN * meanMs) / 1_000)));
  if (busy > busyMax) return Math.max(least, Math.floor(places * less));
  return Math.max(least, busy < busyMin ? Math.min(max, places + more) : places);
}

/**
 * The places of each shard. Those whose lines run share them; another one keeps a place, in which its first line begins
 * at once.
 */
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

/** Sets the places of all queues of batches by how busy this process is, and who else needs it. */
export function createBatchConcurrency({ max, busy = createMeter() }: BatchConcurrencyOptions): BatchConcurrency {
  const shards: YieldingQueues[] = [];
  // So the first lines wait for nothing.
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
    add: (queues) => {
      shards.push(queues);
    },
    stop: () => {
      clearInterval(timer);
    },
  };
}
