import type { Terminal } from '../../shared/contracts/events.ts';
import type { AdmissionStore } from '../../shared/infra/redis/admission-store.ts';
import type { Inflight, Overdue } from '../../shared/infra/redis/inflight.ts';
import type { LeaderLease } from '../../shared/infra/redis/leader-lease.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { RunPipeline } from '../pipeline/run-pipeline.ts';

export interface SweepDeps {
  inflight: Inflight;
  admissions: Pick<AdmissionStore, 'void'>;
  leases: LeaderLease;
  runPipeline: RunPipeline;
  clock: Clock;
  log: Logger;
}

const BATCH = 100;
const LOOK_AGAIN_MS = 5_000;
/** A request that has taken so many workers with it is ended instead of run again. */
const ATTEMPTS_MAX = 3;

/** What a caller hears whose request was lost between admission and queue. */
const LOST: Terminal = {
  finishReason: 'error',
  usage: { promptTokens: 0, completionTokens: 0 },
  error: {
    code: 'model_unavailable',
    message: 'The request was lost before it was queued; send it again.',
    retryAfterSeconds: 1,
  },
};

/** Ends what nobody else will: dead leases, passed deadlines, admissions without a job, jobs that BullMQ gave up. */
export function createSweep({ inflight, admissions, leases, runPipeline, clock, log }: SweepDeps) {
  async function takeOver(shard: number, { requestId, tenantId, fence }: Overdue): Promise<void> {
    log.warn('A request without a living worker is taken over.', { requestId, tenantId, attempt: fence + 1 });
    const delivery = { shard, requestId, tenantId, attempt: fence + 1, endOnly: fence >= ATTEMPTS_MAX };
    await runPipeline(delivery, new AbortController().signal);
  }

  async function sweepOne(shard: number, overdue: Overdue): Promise<void> {
    const { requestId, state, tenantId, keyId, hasText, hasBody, deadlinePassed, jobPending } = overdue;
    if (state !== 'accepted' && state !== 'running') return inflight.forget(shard, requestId);
    // BullMQ hands the job out again by itself; a request with text only has to be ended, so that need not wait.
    if (jobPending && !deadlinePassed && !hasText) return inflight.postpone(shard, requestId, LOOK_AGAIN_MS);
    if (state === 'accepted' && !hasBody) {
      log.warn('An admission whose body never came is taken back.', { requestId, tenantId });
      await admissions.void(requestId, { shard, tenantId, keyId }, clock.now(), LOST);
      return inflight.forget(shard, requestId);
    }
    await inflight.postpone(shard, requestId, LOOK_AGAIN_MS);
    return takeOver(shard, overdue);
  }

  return async (shard: number): Promise<void> => {
    if (!(await leases.hold(shard, 'sweep'))) return;
    for (const overdue of await inflight.overdue(shard, 'interactive', BATCH)) {
      await sweepOne(shard, overdue).catch((error: unknown) => {
        log.error('A request could not be swept; the next round tries again.', { requestId: overdue.requestId, error });
      });
    }
  };
}
