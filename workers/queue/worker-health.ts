import type { Queue, Worker } from 'bullmq';

import type { ChatJob } from '../../shared/contracts/jobs.ts';
import { repeat } from '../../shared/lifecycle/clock.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import { isOutOfMemory } from '../../shared/redis/memory-watch.ts';
import { isRefusal } from '../../shared/redis/scripts.ts';
import { inTime } from '../../shared/redis/time-limits.ts';

/** A worker sends jobs of this name through its own queue. */
export const CANARY = 'canary';

export interface CanaryDeps {
  queue: Queue<ChatJob>;
  workerId: string;
  everyMs: number;
  /** The queue is paused by an operator: nothing passes, and nobody is stuck. */
  onPaused: () => void;
}

/** Sends a job through the queue now and then, as `isRunning()` is true even on a stuck worker. Returns its end. */
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

/**
 * Watches a worker's way to MongoDB. One that alone cannot reach MongoDB is cut off: it takes no jobs and leads
 * nothing, as others can. Where nobody reaches it, all go on as they can. Every worker pings MongoDB, and writes its
 * name into Redis on an answer: the name of another worker means that MongoDB is there.
 */
export type MongoPath = ReturnType<typeof watchMongoPath>;

export interface MongoPathDeps {
  ping: () => Promise<unknown>;
  redis: RedisClient;
  keyspace: Keyspace;
  workerId: string;
  random: () => number;
  log: Logger;
}

const PING_MS = 1_500;
const EVERY_MS = 2_000;
const RETRY_MS = 1_000;
/** Two in a row; with the pauses this takes 6 s, and the leases are given up within 10 s. */
const FAILURES_MAX = 2;
/** Longer than it takes any worker to ping once more. */
const REACHED_MS = 5_000;
const STAND_BACK_MS = 10_000;
const STAND_BACK_MORE_MS = 20_000;

export function watchMongoPath({ ping, redis, keyspace, workerId, random, log }: MongoPathDeps) {
  const listeners: (() => void)[] = [];
  let failures = 0;
  let isCutOff = false;
  let leadsFrom = -Infinity;

  async function isReachedByAnother(): Promise<boolean> {
    const reachedBy = await inTime(redis.get(keyspace.mongoReached)).catch(() => null);
    return reachedBy !== null && reachedBy !== workerId;
  }

  async function look(): Promise<number> {
    const isReached = await inTime(ping(), PING_MS).then(
      () => true,
      () => false,
    );
    failures = isReached ? 0 : failures + 1;
    if (isReached) void redis.set(keyspace.mongoReached, workerId, 'PX', REACHED_MS).catch(() => undefined);
    const wasCutOff = isCutOff;
    isCutOff = failures >= FAILURES_MAX && (await isReachedByAnother());
    if (isCutOff) leadsFrom = performance.now() + STAND_BACK_MS + random() * STAND_BACK_MORE_MS;
    if (isCutOff === wasCutOff) return isReached ? EVERY_MS : RETRY_MS;
    if (isCutOff) {
      log.error('MongoDB answers other workers and not this one, which takes no requests and leads nothing meanwhile.');
      for (const listener of listeners) listener();
    } else log.info('This worker is not cut off from MongoDB any more.');
    return isReached ? EVERY_MS : RETRY_MS;
  }

  const looking = repeat(
    look,
    (pauseMs = RETRY_MS) => pauseMs,
    () => undefined,
  );
  return {
    isCutOff: (): boolean => isCutOff,
    /** False while this worker is cut off, and for 10 to 30 s after: a path that comes and goes must not lead. */
    mayLead: (): boolean => performance.now() >= leadsFrom,
    onCutOff: (listener: () => void): void => void listeners.push(listener),
    stop: looking.stop,
  };
}

const REST_MS = 1_000;
const NEVER_CUT_OFF = { isCutOff: () => false, onCutOff: () => undefined };

/**
 * Pauses a worker for a second when Redis is too full to hand out a job, or takes no writes: BullMQ would retry some
 * hundred times per second and report each failure. It does so, too, while this process is cut off from MongoDB and
 * others take the jobs, but for one that BullMQ waits for at that moment. Running jobs continue.
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

const MEAN_WEIGHT = 0.05;

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
    /** Returns the start time, to be passed to `end`. */
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
