import { Queue } from 'bullmq';

import { JOBS } from '../../contracts/jobs.ts';
import type { JobPayload, JobQueueName } from '../../contracts/jobs.ts';
import type { RedisClient } from '../redis/connection.ts';

/** Events older than this are of no use: nobody waits on them (docs/architecture/facts.md section 3, the relay). */
const EVENTS_KEPT = 100;

export interface OpenQueueOptions {
  /** Must be ready: a queue on one that is not ends the process (docs/architecture/facts.md section 5). */
  client: RedisClient;
  /** Of the queue's keys. */
  prefix: string;
  onError: (error: Error) => void;
}

/** BullMQ's own type with all that it would otherwise guess of the payload. */
type QueueOf<Payload> = Queue<Payload, unknown, string, Payload, unknown, string>;

export interface JobQueue<Name extends JobQueueName> {
  /** For those who watch it. */
  queue: QueueOf<JobPayload<Name>>;
  /** Adds a job with the options of the catalogue; does nothing where one with this id waits or runs already. */
  add(jobId: string, payload: JobPayload<Name>): Promise<void>;
  close(): Promise<void>;
}

/** Opens a queue of the catalogue. */
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
      // One that has failed stays for people to see; what is due must not wait behind it.
      if ((await queue.getJobState(jobId)) === 'failed') await queue.remove(jobId);
      await queue.add(job, payload, { jobId, attempts, removeOnComplete, removeOnFail });
    },
    close: () => queue.close(),
  };
}
