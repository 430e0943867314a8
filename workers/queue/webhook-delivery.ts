import { Worker } from 'bullmq';

import { JOBS, parseJob, WEBHOOK_QUEUE_NAMES } from '../../shared/contracts/jobs.ts';
import type { WebhookJob } from '../../shared/contracts/jobs.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import { openQueueConnection } from '../../shared/redis/slot-client.ts';
import type { QueueRecorder } from '../observers/queue-recorder.ts';
import type { ServeWebhook } from '../webhooks/serve-webhook.ts';
import { recordJobs } from './job-history.ts';
import { restWhenUnable } from './worker-health.ts';

export interface WebhookWorkerDeps {
  client: RedisClient;
  keyspace: Keyspace;
  serve: ServeWebhook;
  recorder: QueueRecorder;
  log: Logger;
}

/** How many receivers each queue calls at once; the calls mostly wait. */
const CONCURRENCY = 64;

/** Runs both queues of deliveries. A failed job loses nothing: the delivery stays due, and the sweep queues it again. */
export function createWebhookWorkers({ client, keyspace, serve, recorder, log }: WebhookWorkerDeps): {
  close(): Promise<void>;
} {
  const connection = openQueueConnection(client, keyspace.webhooks);
  const workers = WEBHOOK_QUEUE_NAMES.map((queue) => {
    const worker = new Worker<WebhookJob>(queue, async (job) => serve(queue, parseJob(queue, job.data)), {
      connection: connection.client,
      prefix: keyspace.webhooks,
      concurrency: CONCURRENCY,
      removeOnComplete: { count: 0 },
      removeOnFail: JOBS[queue].removeOnFail,
      maxStalledCount: JOBS[queue].attempts,
    });
    worker.on('error', (error) => {
      log.warn('The queue of webhooks reported an error.', { error });
    });
    restWhenUnable(worker);
    recordJobs(worker, recorder);
    worker.on('failed', (job, error) => {
      const { tenantId } = job?.data ?? {};
      log.warn('A webhook could not be served; the sweep tries again.', {
        error,
        ...(tenantId === undefined ? {} : { tenantId }),
      });
    });
    return worker;
  });
  return {
    async close() {
      await Promise.all(workers.map((worker) => worker.close()));
      connection.close();
    },
  };
}
