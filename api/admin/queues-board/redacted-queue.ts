import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';

import { shardOfQueue } from '../queues/lane.ts';
import type { LaneQueue } from '../queues/lane.ts';
import { keepIds, keepName, keepReason } from './redact.ts';

interface ReadJob {
  failedReason?: string;
  deferredFailure?: string;
  stacktrace: string[] | null;
}

/** The board formats data and results only, not why a job failed, so these are cleared on the job that was read. */
function hideReasons(job: ReadJob): void {
  if (typeof job.failedReason === 'string') job.failedReason = keepReason(job.failedReason);
  if (typeof job.deferredFailure === 'string') job.deferredFailure = keepReason(job.deferredFailure);
  job.stacktrace = [];
}

/** A queue as the board may see it: counts, times, states and ids, nothing that a tenant wrote. */
export class RedactedQueue extends BullMQAdapter {
  constructor(queue: LaneQueue) {
    // Lanes of different shards have one name; the prefix tells them apart.
    super(queue, {
      readOnlyMode: true,
      allowRetries: false,
      prefix: `shard-${shardOfQueue(queue)}.`,
      delimiter: '.',
    });
    this.setFormatter('data', keepIds);
    this.setFormatter('returnValue', keepIds);
    this.setFormatter('progress', keepIds);
    this.setFormatter('name', (job: { name?: unknown }) => keepName(job.name));
  }

  override async getJob(id: string) {
    const job = await super.getJob(id);
    if (job !== undefined) hideReasons(job);
    return job;
  }

  override async getJobs(...query: Parameters<BullMQAdapter['getJobs']>) {
    const jobs = await super.getJobs(...query);
    for (const job of jobs) hideReasons(job);
    return jobs;
  }

  override getJobLogs(): Promise<string[]> {
    return Promise.resolve([]);
  }
}
