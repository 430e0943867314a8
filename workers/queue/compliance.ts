import { Worker } from 'bullmq';

import { JOBS, parseJob } from '../../shared/contracts/jobs.ts';
import type { ComplianceJob } from '../../shared/contracts/jobs.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import { openQueueConnection } from '../../shared/redis/slot-client.ts';
import type { QueueRecorder } from '../observers/queue-recorder.ts';
import { recordJobs } from './job-history.ts';
import { restWhenUnable } from './worker-health.ts';

export interface ComplianceWorkerDeps {
  client: RedisClient;
  keyspace: Keyspace;
  run: (job: ComplianceJob) => Promise<void>;
  recorder: QueueRecorder;
  log: Logger;
}

/** Deletions mostly wait; an export keeps one thread busy compressing. */
const CONCURRENCY = 8;
const LOCK_MS = 15_000;
const STALL_CHECK_MS = 5_000;

/** Runs exports and deletions. A failed job loses nothing: the work is in MongoDB, and the sweep queues it again. */
export function createComplianceWorker({ client, keyspace, run, recorder, log }: ComplianceWorkerDeps): {
  close(): Promise<void>;
} {
  const connection = openQueueConnection(client, keyspace.compliance);
  const worker = new Worker<ComplianceJob>('compliance', async (job) => run(parseJob('compliance', job.data)), {
    connection: connection.client,
    prefix: keyspace.compliance,
    concurrency: CONCURRENCY,
    removeOnComplete: { count: 0 },
    removeOnFail: JOBS.compliance.removeOnFail,
    // The job of a killed worker blocks the sweep until it counts as stalled.
    lockDuration: LOCK_MS,
    stalledInterval: STALL_CHECK_MS,
    maxStalledCount: JOBS.compliance.attempts,
  });
  worker.on('error', (error) => {
    log.warn('The queue of exports and deletions reported an error.', { error });
  });
  restWhenUnable(worker);
  recordJobs(worker, recorder);
  worker.on('failed', (job, error) => {
    const { tenantId } = job?.data ?? {};
    const tenant = tenantId === undefined ? {} : { tenantId };
    log.warn('An export or a deletion could not be run; the sweep tries again.', { error, ...tenant });
  });
  return {
    async close() {
      await worker.close();
      connection.close();
    },
  };
}
