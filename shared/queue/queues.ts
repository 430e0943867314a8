/**
 * Opens BullMQ's queues. A `client` must be ready: BullMQ ends the process on one that is not. A job holds ids only;
 * its own id is its subject's, which keeps a second job out only while the first exists. Nobody waits for jobs' events:
 * a complete answer reads the same stream as the SSE answer (api/relay/hub.ts).
 */
import { Queue } from 'bullmq';

import { JOBS } from '../contracts/jobs.ts';
import type {
  ChatJob,
  ComplianceJob,
  JobPayload,
  JobQueueName,
  QueueName,
  WebhookJob,
  WebhookQueueName,
} from '../contracts/jobs.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';

/** Few events are kept, because nobody waits for them. */
const EVENTS_KEPT = 100;

export interface OpenQueueOptions {
  client: RedisClient;
  prefix: string;
  onError: (error: Error) => void;
}

/** BullMQ's own type with all that it would otherwise guess of the payload. */
type QueueOf<Payload> = Queue<Payload, unknown, string, Payload, unknown, string>;

export interface JobQueue<Name extends JobQueueName> {
  /** For those who watch it. */
  queue: QueueOf<JobPayload<Name>>;
  /** Does nothing where a job with this id waits or runs already. */
  add(jobId: string, payload: JobPayload<Name>): Promise<void>;
  close(): Promise<void>;
}

export function openQueue<Name extends JobQueueName>(
  name: Name,
  { client, prefix, onError }: OpenQueueOptions,
): JobQueue<Name> {
  const { job, attempts, removeOnComplete, removeOnFail } = JOBS[name];
  const queue: QueueOf<JobPayload<Name>> = new Queue(name, {
    connection: client,
    prefix,
    streams: { events: { maxLen: EVENTS_KEPT } },
  });
  queue.on('error', onError);
  return {
    queue,
    async add(jobId, payload) {
      // A failed job stays for people to see; due work must not wait behind it.
      if ((await queue.getJobState(jobId)) === 'failed') await queue.remove(jobId);
      await queue.add(job, payload, { jobId, attempts, removeOnComplete, removeOnFail });
    },
    close: () => queue.close(),
  };
}

/** One BullMQ queue for each name and shard; its keys carry the shard's hash tag. */
export interface ChatQueues {
  /** For those who watch it: admission adds the jobs, see bullmq-layout.ts. */
  queue(shard: number, name: QueueName): Queue<ChatJob>;
  close(): Promise<void>;
}

export function createChatQueues(client: RedisClient, keyspace: Keyspace, onError: (error: Error) => void): ChatQueues {
  const queues = new Map<string, JobQueue<QueueName>>();

  function open(shard: number, name: QueueName): JobQueue<QueueName> {
    const { tag: prefix } = keyspace.shard(shard);
    const id = `${prefix}:${name}`;
    const found = queues.get(id) ?? openQueue(name, { client, prefix, onError });
    queues.set(id, found);
    return found;
  }

  return {
    queue: (shard, name) => open(shard, name).queue,
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}

/**
 * Names webhooks with due deliveries; MongoDB has what and when. A job is a webhook's, not a delivery's, so one
 * receiver never takes more than one place, however much waits for it.
 */
export type WebhookQueue = ReturnType<typeof createWebhookQueue>;

export function createWebhookQueue(client: RedisClient, keyspace: Keyspace, onError: (error: Error) => void) {
  const options = { client, prefix: keyspace.webhooks, onError };
  const queues = { webhooks: openQueue('webhooks', options), 'webhooks-slow': openQueue('webhooks-slow', options) };

  return {
    /** Does nothing where the webhook has a job in this queue already. */
    add: (name: WebhookQueueName, job: WebhookJob): Promise<void> => queues[name].add(job.webhookId, job),
    async close(): Promise<void> {
      await Promise.all(Object.values(queues).map((queue) => queue.close()));
    },
  };
}

/** Says that an export or a deletion has work; MongoDB has what, and how far it is. */
export type ComplianceQueue = ReturnType<typeof createComplianceQueue>;

export function createComplianceQueue(client: RedisClient, keyspace: Keyspace, onError: (error: Error) => void) {
  const queue = openQueue('compliance', { client, prefix: keyspace.compliance, onError });
  return {
    /** Does nothing where it is queued already. */
    add: (job: ComplianceJob): Promise<void> => queue.add(job.jobId, job),
    close: (): Promise<void> => queue.close(),
  };
}
