import type { Job } from 'bullmq';

import type { ChatJob, JobFacts } from '../../shared/contracts/jobs.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import type { Claimed, Ended, Outcome } from '../pipeline/stage.ts';

/** Fails the job of a request that has ended with an error; the request itself is answered and needs nothing. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed';

  constructor(code: ErrorCode) {
    super(code);
    // BullMQ would store where in this program it was made, which says nothing of the request.
    this.stack = '';
  }
}

/** What Bull Board keeps of ended requests (docs/spec/contract.md section 8). */
export interface JobHistory {
  /** Whether the job stays when its request ends so; the others go with their requests. Counts those that stay. */
  keeps(run: Claimed, outcome: Outcome): boolean;
  /** What is to be stored as the result of a job that stays. Throws RequestFailed where the request failed. */
  conclude(job: Job<ChatJob>, ended: Ended, tookMs: number): Promise<JobFacts>;
}

/** Milliseconds between two completed jobs that are kept: at a hundred requests a second one in a hundred pays for it. */
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

/** `completedKept`: how many completed jobs a queue holds at most; 0 keeps none. */
export function createJobHistory(completedKept: number): JobHistory {
  let lastKeptAt = -Infinity;

  return {
    keeps({ envelope }, { error }) {
      if (error !== undefined) return true;
      const now = performance.now();
      // Where nothing of a conversation is to stay, its job need not either.
      if (completedKept === 0 || now - lastKeptAt < SAMPLE_MS || envelope.retentionMs === 0) return false;
      lastKeptAt = now;
      return true;
    },

    async conclude(job, ended, tookMs) {
      const { error } = ended.outcome;
      if (error !== undefined) {
        // Without them the job still fails with its code.
        await job.updateData(factsOf(job, ended, tookMs)).catch(() => undefined);
        throw new RequestFailed(error.code);
      }
      // BullMQ reads it when it ends the job; what is stored of the job says that it is removed.
      job.opts = { ...job.opts, removeOnComplete: { count: completedKept, age: KEPT_SECONDS } };
      return factsOf(job, ended, tookMs);
    },
  };
}
