import { setTimeout as pause } from 'node:timers/promises';

import { Worker } from 'bullmq';
import type { Job, Queue } from 'bullmq';

import type { ChatJob, JobFacts, QueueName } from '../../shared/contracts/jobs.ts';
import { JOBS, parseJob } from '../../shared/contracts/jobs.ts';
import { INSTANCE } from '../../shared/logging/logger.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { createChatBackend, createJobStore } from './job-source.ts';
import type { ChatBackend, ClaimSettings } from './job-source.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import { openQueueConnection } from '../../shared/redis/slot-client.ts';
import type { QueueRoom } from '../pipeline/capacities.ts';
import type { HandedRequest, RunPipeline } from '../pipeline/stage.ts';
import { CANARY, startCanary, pauseWhenUnable, createWorkMeter } from './worker-health.ts';
import type { MongoPath } from './worker-health.ts';
import { createJobHistory, RequestFailed } from './job-history.ts';

export interface InferenceDeps {
  /** Ready, with `maxRetriesPerRequest: null`; BullMQ opens a blocking connection beside it. */
  client: RedisClient;
  keyspace: Keyspace;
  shard: number;
  concurrency: number;
  queueName: QueueName;
  queue: Queue<ChatJob>;
  runPipeline: RunPipeline;
  room: QueueRoom;
  /** Claims requests in the call that takes their jobs. Absent: each request is claimed when it starts. */
  claims?: ClaimSettings;
  workerId: string;
  /** Completed jobs kept for Bull Board; 0: none. */
  completedKept: number;
  onLockLost: (requestId: string) => void;
  /** While this process is cut off from MongoDB it takes no jobs. Absent: it never is. */
  path?: MongoPath;
  log: Logger;
  /** Tests make them shorter. */
  timings?: InferenceTimings;
}

/** Milliseconds. */
interface InferenceTimings {
  lockMs: number;
  stallCheckMs: number;
  canaryMs: number;
}

export type InferenceWorker = ReturnType<typeof createInferenceWorker>;

/** A killed worker's jobs start again within about 13 s (job-source.ts). */
const TIMINGS: InferenceTimings = { lockMs: 10_000, stallCheckMs: 3_000, canaryMs: 10_000 };
/** Long enough for a job that was being fetched when the worker began to stop to have started. */
const IDLE_MS = 1_000;
const IDLE_CHECK_MS = 50;
/** A job that was found without a lock so often may have taken its workers with it, so its request is ended. */
const STALLS_MAX = 2;

async function untilIdle(running: () => number, signal: AbortSignal): Promise<void> {
  let since = performance.now();
  while (performance.now() - since < IDLE_MS) {
    await pause(IDLE_CHECK_MS, undefined, { signal });
    if (running() > 0) since = performance.now();
  }
}

/** With all places taken, BullMQ looks for jobs only when one ends, perhaps in minutes, or when it is resumed. */
async function resumePolling(worker: Worker): Promise<void> {
  if (worker.isPaused()) return;
  await worker.pause(true);
  // A failure is reported as an error of the worker.
  if (worker.closing === undefined) await worker.resume();
}

/** Returns what BullMQ is to store of the job, if anything. `handed`: the job that BullMQ got under this token. */
function createProcessor(
  { runPipeline, queueName, shard, completedKept }: InferenceDeps,
  meter: ReturnType<typeof createWorkMeter>,
  handed: ChatBackend['handed'],
) {
  const history = createJobHistory(completedKept);

  async function run(job: Job<ChatJob>, request: HandedRequest, startedAt: number): Promise<JobFacts | undefined> {
    const held = handed(job.token ?? '');
    const kept = { job: true };
    const endsWith = (...end: Parameters<typeof history.keeps>) => !(kept.job = history.keeps(...end));
    const ended = await runPipeline({ ...request, job: held && { ...held, endsWith } });
    if (ended === undefined) return undefined;
    if (held === undefined || kept.job) return history.conclude(job, ended, performance.now() - startedAt);
    held.isEnded = true;
    return undefined;
  }

  return async (job: Job<ChatJob>): Promise<JobFacts | undefined> => {
    meter.note();
    if (job.name === CANARY || job.id === undefined) return undefined;
    // A payload that cannot be read fails its job. The sweep then finds the request overdue and runs it from its record.
    const { tenantId } = parseJob(queueName, job.data);
    const startedAt = meter.begin();
    try {
      const endOnly = job.stalledCounter >= STALLS_MAX;
      return await run(job, { shard, requestId: job.id, tenantId, fence: job.attemptsStarted, endOnly }, startedAt);
    } finally {
      meter.end(startedAt);
    }
  };
}

function logQueue(worker: Worker<ChatJob, unknown>, shard: number, log: Logger): void {
  worker.on('failed', (job, error) => {
    // The request has ended, with its error in log and metrics.
    if (error instanceof RequestFailed) return;
    const requestId = job?.id === undefined ? {} : { requestId: job.id };
    log.error('A job failed; the sweep looks after its request.', { shard, error, ...requestId });
  });
  worker.on('error', (error) => {
    // BullMQ says so of each job, and `lockRenewalFailed` of all of them.
    log[error.message.startsWith('could not renew lock') ? 'debug' : 'warn']('The queue reported an error.', {
      shard,
      error,
    });
  });
}

/** Runs one queue of a shard. Only jobs that are kept return a value: BullMQ stores and publishes it. */
export function createInferenceWorker(deps: InferenceDeps) {
  const { client, keyspace, shard, queueName, queue, workerId, onLockLost, log, timings = TIMINGS } = deps;
  const meter = createWorkMeter();
  const connection = openQueueConnection(client, keyspace.shard(shard).tag);

  const backend = createChatBackend({
    jobs: createJobStore(connection.client, keyspace, { shard, queue: queueName, claims: deps.claims }),
    room: deps.room,
    places: () => worker.concurrency,
    lockMs: timings.lockMs,
    onError: (error) => {
      log.warn('Jobs could not be put back; they are handed out again when their locks have run out.', {
        shard,
        error,
      });
    },
  });

  const worker: Worker<ChatJob> = new Worker<ChatJob, unknown, string>(
    queueName,
    createProcessor(deps, meter, backend.handed),
    {
      name: INSTANCE,
      connection: connection.client,
      prefix: keyspace.shard(shard).tag,
      concurrency: deps.concurrency,
      lockDuration: timings.lockMs,
      stalledInterval: timings.stallCheckMs,
      // BullMQ would fail the job, whose request may well be answered: only the request's lease tells (claim.ts).
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      removeOnComplete: { count: 0 },
      removeOnFail: JOBS[queueName].removeOnFail,
    },
    backend.factory,
  );
  logQueue(worker, shard, log);
  pauseWhenUnable(worker, deps.path);
  // Another worker may have the job, or Redis was unavailable for longer than a lock lasts. The lease decides.
  worker.on('lockRenewalFailed', (jobIds) => {
    for (const jobId of jobIds) onLockLost(jobId);
  });
  const stopCanary = startCanary({ queue, workerId, everyMs: timings.canaryMs, onPaused: meter.note });

  return {
    /** May be changed at any time. */
    get concurrency(): number {
      return worker.concurrency;
    },
    set concurrency(places: number) {
      const before = worker.concurrency;
      if (places === before) return;
      worker.concurrency = places;
      if (places > before && meter.running() >= before) void resumePolling(worker);
    },
    /** Milliseconds since it took or ended a job, canaries included; 0 while its places or its providers are full. */
    quietMs: (): number => (backend.hasNoRoom() ? 0 : meter.quietMs(worker.concurrency)),
    running: meter.running,
    idleMs: meter.idleMs,
    meanMs: meter.meanMs,
    /** Resolves when nothing is running any more, whether or not Redis is reachable. */
    async drain(): Promise<void> {
      stopCanary();
      backend.stop().catch(() => undefined);
      // BullMQ's own `close` hangs while Redis is unavailable. It is enough that nothing is running.
      const drained = new AbortController();
      try {
        await Promise.race([worker.close(), untilIdle(meter.running, drained.signal)]);
      } finally {
        drained.abort();
      }
    },
    /** Waits for Redis as well. */
    async close(): Promise<void> {
      stopCanary();
      await backend.stop();
      await worker.close();
      connection.close();
    },
  };
}
