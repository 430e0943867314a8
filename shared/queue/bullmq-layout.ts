import { JOBS } from '../contracts/jobs.ts';
import type { ChatJob, QueueName } from '../contracts/jobs.ts';

/**
 * BullMQ's names of keys, fields and values in Redis. It calls its layout private, so its version is pinned, and only
 * this file spells the names, for TypeScript and, between two `@`, for Lua (scripts.ts). BullMQ's own interface gives
 * its counts and the states of jobs.
 */
export const BULLMQ = {
  /** Sorted set of prioritized jobs: the waiting queue, by start tag. */
  prioritized: 'prioritized',
  /** List of jobs that go before the waiting queue: they were handed out before. */
  wait: 'wait',
  active: 'active',
  stalled: 'stalled',
  stalledCheck: 'stalled-check',
  delayed: 'delayed',
  completed: 'completed',
  failed: 'failed',
  priorityCounter: 'pc',
  /** This member tells workers that something waits. */
  marker: 'marker',
  jobWaits: '0',
  lock: 'lock',
  meta: 'meta',
  paused: 'paused',
  concurrency: 'concurrency',
  limiterMax: 'max',
  limiterDuration: 'duration',
  name: 'name',
  data: 'data',
  opts: 'opts',
  timestamp: 'timestamp',
  delay: 'delay',
  priority: 'priority',
  attemptsStarted: 'ats',
  processedOn: 'processedOn',
  finishedOn: 'finishedOn',
} as const;

/** BullMQ's keys that this service reads or writes itself, of the queues under one prefix. */
export function bullmqKeys(prefix: string) {
  const of = (name: string) => (queue: string) => `${prefix}:${queue}:${name}`;
  const job = (queue: string, id: string) => `${prefix}:${queue}:${id}`;
  return {
    prioritized: of(BULLMQ.prioritized),
    wait: of(BULLMQ.wait),
    active: of(BULLMQ.active),
    stalled: of(BULLMQ.stalled),
    stalledCheck: of(BULLMQ.stalledCheck),
    delayed: of(BULLMQ.delayed),
    priorityCounter: of(BULLMQ.priorityCounter),
    job,
    lock: (queue: string, id: string) => `${job(queue, id)}:${BULLMQ.lock}`,
    marker: of(BULLMQ.marker),
    queueMeta: of(BULLMQ.meta),
  };
}

export const MARKER = { member: BULLMQ.jobWaits, score: 0 };

/** Only fields that differ from BullMQ's defaults. */
export interface StoredJob {
  name: string;
  data: string;
  opts: string;
}

/**
 * A chat request's job as the pinned BullMQ stores it; admit.lua adds it in the step that admits the request. A test
 * compares it with a job that BullMQ has added.
 */
export function storedChatJob(queue: QueueName, requestId: string, payload: ChatJob): StoredJob {
  const { job, attempts, removeOnComplete, removeOnFail } = JOBS[queue];
  return {
    name: job,
    data: JSON.stringify(payload),
    opts: JSON.stringify({ jobId: requestId, attempts, removeOnComplete, removeOnFail }),
  };
}

/** Fields that a job has in Redis at its first start: take.lua need not read them. */
export function fieldsOfFirstStart(
  queue: QueueName,
  requestId: string,
  { tenantId, timestamp, now }: { tenantId: string; timestamp: string; now: number },
): string[] {
  const { name, data, opts } = storedChatJob(queue, requestId, { tenantId });
  return [
    [BULLMQ.name, name],
    [BULLMQ.data, data],
    [BULLMQ.opts, opts],
    [BULLMQ.timestamp, timestamp],
    [BULLMQ.delay, '0'],
    [BULLMQ.priority, '0'],
    [BULLMQ.processedOn, String(now)],
    [BULLMQ.attemptsStarted, '1'],
  ].flat();
}
