import type { Job, Worker } from 'bullmq';

import { failureOf } from '../../shared/contracts/events.ts';
import type { ChatJob, JobFacts } from '../../shared/contracts/jobs.ts';
import type { QueueRecorder } from '../observers/queue-recorder.ts';
import type { Claimed, Ended, Outcome } from '../pipeline/stage.ts';

/** Marks a job as failed because its request ended with an error; the caller already has its answer. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed';

  constructor(reason: string) {
    super(reason);
    // BullMQ would store the stack, which says nothing about the request.
    this.stack = '';
  }
}

/** Milliseconds between two completed jobs that are kept: keeping one costs a third of what the whole job costs. */
const SAMPLE_MS = 1_000;
const KEPT_SECONDS = 86_400;

function factsOf({ data, timestamp, processedOn }: Job<ChatJob>, { run, outcome }: Ended, tookMs: number): JobFacts {
  const { envelope, answer } = run;
  const { finishReason, usage, error } = outcome;
  return {
    tenantId: data.tenantId,
    tier: envelope.tier,
    endpoint: envelope.endpoint,
    finishReason,
    provider: answer.provider,
    model: answer.model,
    waitedMs: Math.max(0, (processedOn ?? timestamp) - timestamp),
    tookMs: Math.round(tookMs),
    promptTokens: usage.promptTokens,
    completionTokens: usage.completionTokens,
    ...(error === undefined ? {} : { errorCode: error.code }),
  };
}

/** A queue keeps at most `completedKept` completed jobs; 0: none. */
export function createJobHistory(completedKept: number) {
  let lastKeptAt = -Infinity;

  return {
    /** Ask once: a job that is kept counts as a sample. */
    keeps({ envelope }: Claimed, { error }: Outcome): boolean {
      if (error !== undefined) return true;
      const now = performance.now();
      // If nothing of a conversation is kept, neither is its job.
      if (completedKept === 0 || now - lastKeptAt < SAMPLE_MS || envelope.retentionMs === 0) return false;
      lastKeptAt = now;
      return true;
    },

    /** The result to store of a job that is kept. Throws RequestFailed if the request failed. */
    async conclude(job: Job<ChatJob>, ended: Ended, tookMs: number): Promise<JobFacts> {
      const { error } = ended.outcome;
      if (error !== undefined) {
        // If this fails the job still has its error code.
        await job.updateData(factsOf(job, ended, tookMs)).catch(() => undefined);
        throw new RequestFailed(failureOf(error.code, ended.run.answer.trace));
      }
      // BullMQ reads these options when it ends the job; the stored ones would remove it.
      job.opts = { ...job.opts, removeOnComplete: { count: completedKept, age: KEPT_SECONDS } };
      return factsOf(job, ended, tookMs);
    },
  };
}

/** Counts a worker's jobs. Chat requests are counted as such instead (workers/observers/queue-recorder.ts). */
export function recordJobs(worker: Worker, { count }: QueueRecorder): void {
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
