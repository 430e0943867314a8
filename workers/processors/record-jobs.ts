import type { Job, Worker } from 'bullmq';

import type { QueueRecorder } from '../queue-recorder.ts';

/**
 * Counts the jobs that a worker ends. The queues of chat requests are counted by requests instead
 * (workers/queue-recorder.ts).
 */
export function recordJobs(worker: Worker, { count }: Pick<QueueRecorder, 'count'>): void {
  const place = { prefix: worker.opts.prefix ?? 'bull', queue: worker.name };
  const record = ({ timestamp, processedOn = timestamp, finishedOn = processedOn }: Job, hasFailed: boolean) => {
    count(place, {
      hasFailed,
      waitedMs: Math.max(0, processedOn - timestamp),
      ranMs: Math.max(0, finishedOn - processedOn),
    });
  };
  worker.on('completed', (job) => {
    record(job, false);
  });
  worker.on('failed', (job) => {
    if (job !== undefined) record(job, true);
  });
}
