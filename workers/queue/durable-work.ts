/**
 * The one shape of durable work: deliveries of webhooks, exports, deletions.
 *
 * 1. **MongoDB has what is due**: rows with a claim that only rises (a fence) and a time until which it holds
 *    (shared/mongo/collection.ts, `createClaims`).
 * 2. **A queue only says that something is due**, so that it is done at once, and shows on the board. A job that fails,
 *    or that Redis loses, loses nothing.
 * 3. **A worker claims a row, does the work, and records its end under the claim**; long work renews it. Failed work is
 *    given back with a later time: webhooks by their schedule (workers/webhooks/deliver.ts), exports and deletions by a
 *    back-off (workers/compliance/run-job.ts).
 * 4. **A sweep**, of one worker of the fleet, queues what is due and nobody holds: retries, and what a dead worker or a
 *    Redis that lost data has left.
 */
import { Worker } from 'bullmq';

import { JOBS, parseJob } from '../../shared/contracts/jobs.ts';
import type { JobPayload, JobQueueName, QueueName } from '../../shared/contracts/jobs.ts';
import { repeat } from '../../shared/lifecycle/clock.ts';
import type { Clock, Repeating } from '../../shared/lifecycle/clock.ts';
import { INSTANCE } from '../../shared/logging/logger.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import { openQueueConnection } from '../../shared/redis/slot-client.ts';
import { FLEET_SHARD } from '../../shared/redis/stores/leader-lease.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import type { QueueRecorder } from '../observers/queue-recorder.ts';
import { recordJobs } from './job-history.ts';
import { pauseWhenUnable } from './worker-health.ts';

type WorkName = Exclude<JobQueueName, QueueName>;

interface Work {
  /** The work, for log lines. */
  what: string;
  /** The prefix of the queue's keys, by its name in the keyspace. */
  keys: 'webhooks' | 'compliance';
  concurrency: number;
  sweepMs: number;
  /** Jobs that a round of the sweep queues at most. */
  sweepMax: number;
}

/** A queue calls so many receivers at once; the calls mostly wait. */
const WEBHOOKS: Work = {
  what: 'webhook deliveries',
  keys: 'webhooks',
  concurrency: 64,
  sweepMs: 1_000,
  sweepMax: 1_000,
};

const WORK: Readonly<Record<WorkName, Work>> = {
  webhooks: WEBHOOKS,
  'webhooks-slow': WEBHOOKS,
  compliance: {
    what: 'exports and deletions',
    keys: 'compliance',
    // Deletions mostly wait; an export keeps one thread busy compressing.
    concurrency: 8,
    sweepMs: 2_000,
    sweepMax: 200,
  },
};

export interface DurableWorkDeps<Name extends WorkName> {
  client: RedisClient;
  keyspace: Keyspace;
  run: (name: Name, job: JobPayload<Name>) => Promise<void>;
  /** Lists the jobs that are due and in nobody's hands, at most `limit`. */
  due: (now: number, limit: number) => Promise<JobPayload<Name>[]>;
  queue: (job: JobPayload<Name>) => Promise<void>;
  leases: LeaderLease;
  recorder: QueueRecorder;
  clock: Clock;
  log: Logger;
}

function openWorker<Name extends WorkName>(
  name: Name,
  connection: RedisClient,
  { keyspace, run, recorder, log }: DurableWorkDeps<Name>,
): Worker {
  const { what, keys, concurrency } = WORK[name];
  const worker = new Worker<{ tenantId: string }>(name, async (job) => run(name, parseJob(name, job.data)), {
    name: INSTANCE,
    connection,
    prefix: keyspace[keys],
    removeOnComplete: { count: 0 },
    removeOnFail: JOBS[name].removeOnFail,
    maxStalledCount: JOBS[name].attempts,
    concurrency,
    // The job of a killed worker keeps the sweep from queueing what is due until it counts as stalled.
    lockDuration: 15_000,
    stalledInterval: 5_000,
  });
  worker.on('error', (error) => {
    log.warn(`The queue of ${what} reported an error.`, { error });
  });
  pauseWhenUnable(worker);
  recordJobs(worker, recorder);
  worker.on('failed', (job, error) => {
    const tenant = job === undefined ? {} : { tenantId: job.data.tenantId };
    log.warn(`A job of ${what} failed; the sweep tries again.`, { error, ...tenant });
  });
  return worker;
}

function startSweep<Name extends WorkName>(
  name: Name,
  { leases, due, queue, clock, log }: DurableWorkDeps<Name>,
): Repeating {
  const { what, keys, sweepMs, sweepMax } = WORK[name];
  return repeat(
    async () => {
      if (!(await leases.hold(FLEET_SHARD, keys))) return;
      const jobs = await due(clock.now(), sweepMax);
      await Promise.all(jobs.map(queue));
    },
    () => sweepMs,
    (error) => {
      log.warn(`The sweep of ${what} failed; the next round tries again.`, { error });
    },
  );
}

export function startDurableWork<Name extends WorkName>(
  names: readonly [Name, ...Name[]],
  deps: DurableWorkDeps<Name>,
): { close(): Promise<void> } {
  const [first] = names;
  const connection = openQueueConnection(deps.client, deps.keyspace[WORK[first].keys]);
  const workers = names.map((name) => openWorker(name, connection.client, deps));
  const sweeping = startSweep(first, deps);
  return {
    async close() {
      await Promise.all([sweeping.stop(), ...workers.map((worker) => worker.close())]);
      connection.close();
    },
  };
}
