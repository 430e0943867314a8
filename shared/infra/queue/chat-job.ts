import { JOBS } from '../../contracts/jobs.ts';
import type { ChatJob, QueueName } from '../../contracts/jobs.ts';

/** The fields of a BullMQ job that differ from its defaults, as BullMQ stores them. */
export interface StoredJob {
  name: string;
  data: string;
  opts: string;
}

/**
 * A chat request's job as the pinned version of BullMQ stores it: Lua adds it in the same step that admits the request,
 * and workers take it like any other. A test compares it with a job that BullMQ has added itself.
 */
export function storedChatJob(queue: QueueName, requestId: string, payload: ChatJob): StoredJob {
  const { job, attempts, removeOnComplete, removeOnFail } = JOBS[queue];
  return {
    name: job,
    data: JSON.stringify(payload),
    opts: JSON.stringify({ jobId: requestId, attempts, removeOnComplete, removeOnFail }),
  };
}
