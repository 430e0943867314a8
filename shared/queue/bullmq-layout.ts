import { JOBS } from '../contracts/jobs.ts';
import type { ChatJob, QueueName } from '../contracts/jobs.ts';

/**
 * The keys of BullMQ that this service reads or writes itself, of the queues under one prefix. BullMQ calls its layout
 * private, so its version is pinned, and everything of it that TypeScript names stands in this file. Its counts and the
 * states of jobs are asked for by its own interface.
 */
export function bullmqKeys(prefix: string) {
  const job = (queue: string, id: string) => `${prefix}:${queue}:${id}`;
  return {
    /** Sorted set of prioritized jobs: the line in which requests wait, by their turn. */
    line: (queue: string) => `${prefix}:${queue}:prioritized`,
    /** List of jobs that go before the line: those that were handed out before. */
    waiting: (queue: string) => `${prefix}:${queue}:wait`,
    /** Jobs in workers' hands. */
    active: (queue: string) => `${prefix}:${queue}:active`,
    /** Jobs whose workers may be dead. */
    stalled: (queue: string) => `${prefix}:${queue}:stalled`,
    /** Present for a moment after a search for jobs whose locks have run out. */
    stalledCheck: (queue: string) => `${prefix}:${queue}:stalled-check`,
    /** Jobs that wait for a time. */
    delayed: (queue: string) => `${prefix}:${queue}:delayed`,
    /** Counter for jobs of one priority. */
    priorityCounter: (queue: string) => `${prefix}:${queue}:pc`,
    job,
    /** Held by the worker that has the job. */
    lock: (queue: string, id: string) => `${job(queue, id)}:lock`,
    /** Tells workers that something waits. */
    marker: (queue: string) => `${prefix}:${queue}:marker`,
    /** Settings of a queue. */
    queueMeta: (queue: string) => `${prefix}:${queue}:meta`,
  };
}

/** An entry of a marker that says: a job waits. */
export const MARKER = { member: '0', score: 0 };

/** The fields of a job that differ from BullMQ's defaults, as BullMQ stores them. */
export interface StoredJob {
  name: string;
  data: string;
  opts: string;
}

/**
 * A chat request's job as the pinned version of BullMQ stores it. admit.lua adds the job in the step that admits the
 * request. A test compares it with a job that BullMQ has added.
 */
export function storedChatJob(queue: QueueName, requestId: string, payload: ChatJob): StoredJob {
  const { job, attempts, removeOnComplete, removeOnFail } = JOBS[queue];
  return {
    name: job,
    data: JSON.stringify(payload),
    opts: JSON.stringify({ jobId: requestId, attempts, removeOnComplete, removeOnFail }),
  };
}

/** The fields that a job has in Redis once it starts for the first time: take.lua need not read them. */
export function fieldsOfFirstStart(
  queue: QueueName,
  requestId: string,
  { tenantId, timestamp, now }: { tenantId: string; timestamp: string; now: number },
): string[] {
  const { name, data, opts } = storedChatJob(queue, requestId, { tenantId });
  const fields = { name, data, opts, timestamp, delay: '0', priority: '0', processedOn: String(now), ats: '1' };
  return Object.entries(fields).flat();
}
