import { JOBS } from '../../contracts/jobs.ts';
import type { ChatJob, QueueName } from '../../contracts/jobs.ts';

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
