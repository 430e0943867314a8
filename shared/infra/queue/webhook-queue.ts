import type { WebhookJob, WebhookQueueName } from '../../contracts/jobs.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { openQueue } from './open-queue.ts';

/**
 * Says which webhooks have something to deliver; what, and when, stands in MongoDB. A job is a webhook's, not a
 * delivery's, so one receiver never takes more than one place, however much waits for it.
 */
export interface WebhookQueue {
  /** Does nothing where the webhook has a job in this queue already. */
  add(name: WebhookQueueName, job: WebhookJob): Promise<void>;
  close(): Promise<void>;
}

/** `client` must be ready: a queue on one that is not ends the process (docs/architecture/facts.md section 5). */
export function createWebhookQueue(
  client: RedisClient,
  keyspace: Keyspace,
  onError: (error: Error) => void,
): WebhookQueue {
  const options = { client, prefix: keyspace.webhooks, onError };
  const queues = { webhooks: openQueue('webhooks', options), 'webhooks-slow': openQueue('webhooks-slow', options) };

  return {
    add: (name, job) => queues[name].add(job.webhookId, job),
    async close() {
      await Promise.all(Object.values(queues).map((queue) => queue.close()));
    },
  };
}
