import type { Queue, Worker } from 'bullmq';

import type { ChatJob } from '../../shared/contracts/jobs.ts';
import { isOutOfMemory } from '../../shared/redis/memory-watch.ts';
import { isRefusal } from '../../shared/redis/scripts.ts';
import type { MongoPath } from '../mongo-path.ts';

/** Name of the jobs that a worker sends through its own queue. */
export const CANARY = 'canary';

export interface CanaryDeps {
  queue: Queue<ChatJob>;
  workerId: string;
  everyMs: number;
  /** The queue is paused by an operator: nothing passes, and nobody is stuck. */
  onPaused: () => void;
}

/**
 * Sends a job through the queue now and then: `isRunning()` is true even on a worker that is stuck. Returns what ends it.
 */
export function startCanary({ queue, workerId, everyMs, onPaused }: CanaryDeps): () => void {
  let sent = 0;
  let isSending = false;

  async function send(): Promise<void> {
    if (await queue.isPaused()) {
      onPaused();
      return;
    }
    sent += 1;
    await queue.add(
      CANARY,
      { tenantId: '' },
      { jobId: `canary-${workerId}-${sent}`, removeOnComplete: true, removeOnFail: true },
    );
  }

  const timer = setInterval(() => {
    // One that waits for Redis is sent once Redis is back: more of them would only add up.
    if (isSending) return;
    isSending = true;
    send()
      .catch(() => undefined)
      .finally(() => (isSending = false));
  }, everyMs);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
}

const REST_MS = 1_000;
const NEVER_CUT_OFF = { isCutOff: () => false, onCutOff: () => undefined };

/**
 * Pauses a worker for a second when Redis is too full to hand out a job, or takes no writes. Otherwise BullMQ would
 * retry some hundred times per second and report each failure. So it does while this process is cut off from MongoDB, and
 * others take the jobs, but for one that BullMQ waits for at that moment. Running jobs continue meanwhile.
 */
export function pauseWhenUnable(worker: Worker, path: Pick<MongoPath, 'isCutOff' | 'onCutOff'> = NEVER_CUT_OFF): void {
  let timer: NodeJS.Timeout | undefined;

  function restOn(): void {
    timer = setTimeout(() => {
      if (path.isCutOff() && worker.closing === undefined) {
        restOn();
        return;
      }
      timer = undefined;
      // A failure is reported as an error of the worker.
      if (worker.closing === undefined) void worker.resume();
    }, REST_MS);
    timer.unref();
  }

  async function pausePolling(): Promise<void> {
    if (timer !== undefined || worker.isPaused()) return;
    restOn();
    await worker.pause(true);
  }

  worker.on('error', (error) => {
    if (isOutOfMemory(error) || isRefusal(error)) void pausePolling();
  });
  path.onCutOff(() => void pausePolling());
}

/** The weight of the latest request in the mean. */
const MEAN_WEIGHT = 0.05;

/** The load of a worker's queue, measured from when its jobs begin and end. */
export function createWorkMeter() {
  let lastWorkAt = performance.now();
  let lastRequestAt = -Infinity;
  let running = 0;
  let meanMs = 0;
  /** The sum of the start times of all running requests. */
  let beginnings = 0;

  return {
    running: (): number => running,
    /** A job has arrived, perhaps a canary. */
    note(): void {
      lastWorkAt = performance.now();
    },
    /** A request begins; returns its start time, to be passed to `end`. */
    begin(): number {
      const startedAt = performance.now();
      running += 1;
      beginnings += startedAt;
      return startedAt;
    },
    end(startedAt: number): void {
      running -= 1;
      beginnings -= startedAt;
      lastRequestAt = lastWorkAt = performance.now();
      const tookMs = lastRequestAt - startedAt;
      meanMs = meanMs === 0 ? tookMs : meanMs + (tookMs - meanMs) * MEAN_WEIGHT;
    },
    /** Milliseconds since a job arrived or a request ended; 0 while all `places` are taken. */
    quietMs: (places: number): number => (running >= places ? 0 : performance.now() - lastWorkAt),
    /** Milliseconds since the last request ended; 0 while one runs. */
    idleMs: (): number => (running > 0 ? 0 : performance.now() - lastRequestAt),
    /** Average duration of the latest requests, or of the running ones so far, whichever is longer. */
    meanMs: (): number => Math.max(meanMs, running === 0 ? 0 : performance.now() - beginnings / running),
  };
}
