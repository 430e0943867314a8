import { LOST } from '../../shared/contracts/events.ts';
import type { AdmissionStore } from '../../shared/infra/redis/requests/admission-store.ts';
import type { Inflight, Overdue } from '../../shared/infra/redis/requests/inflight.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import { inTime } from '../../shared/infra/redis/timing.ts';
import type { RequestStore } from '../../shared/infra/redis/requests/request-store.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Delivery } from '../pipeline/stage.ts';
import type { RecoverLost } from './recover-lost.ts';

export interface SweepDeps {
  inflight: Inflight;
  admissions: Pick<AdmissionStore, 'void'>;
  requests: Pick<RequestStore, 'finish'>;
  leases: LeaderLease;
  /** Ends the request; how does not matter here. */
  runPipeline: (delivery: Delivery) => Promise<unknown>;
  /** Brings back what Redis has lost: before the rest, which ends what has no body. */
  recoverLost: RecoverLost;
  /** How long the end of a request is kept for its reader. */
  retentionMs: number;
  /** Redis came back a moment ago: leases have run out whose workers live. */
  hasReconnectedRecently: () => boolean;
  /** Redis's memory is used up: the queue can hand no job out, so the sweep runs what waits there. */
  isExhausted: () => boolean;
  log: Logger;
}

const TASK = 'sweep';
const BATCH = 100;
/** In one round; the next one follows soon. */
const BATCHES_MAX = 50;
const LOOK_AGAIN_MS = 5_000;
const RECOVER_MS = 1_000;
/** For a job that waits in its queue: its worker's claim, or its deadline, comes without this. */
const WAITING_MS = 30_000;
/** Requests that this process runs beside those of the queue. */
const TAKEOVERS_MAX = 50;
/** A request that has taken so many workers with it is ended instead of run again. */
const ATTEMPTS_MAX = 3;

export interface Sweep {
  sweepShard(shard: number): Promise<void>;
  /** Waits for the requests that were taken over. */
  idle(): Promise<void>;
  /** Lets another process sweep at once. */
  release(shard: number): Promise<void>;
}

/** Ends what nobody else will: dead leases, passed deadlines, admissions without a job, jobs that BullMQ gave up. */
export function createSweep(deps: SweepDeps): Sweep {
  const { inflight, admissions, requests, leases, runPipeline, recoverLost, retentionMs, log } = deps;
  const { hasReconnectedRecently, isExhausted } = deps;
  const takeovers = new Set<Promise<unknown>>();

  /** In the background: one that is run again may take minutes, and the sweep must go on. */
  function takeOver(shard: number, { requestId, tenantId, fence, deliveries }: Overdue): void {
    log.warn('A request without a living worker is taken over.', { requestId, tenantId, attempt: fence + 1 });
    const delivery = { shard, requestId, tenantId, attempt: fence + 1, endOnly: deliveries >= ATTEMPTS_MAX };
    const takeover = runPipeline(delivery)
      .catch((error: unknown) => {
        log.error('A request could not be taken over; a later round tries again.', { requestId, error });
      })
      .finally(() => takeovers.delete(takeover));
    takeovers.add(takeover);
  }

  /** Without its body a request can neither be run again nor be priced: it is ended, and what it holds is given back. */
  async function endWithoutBody(shard: number, overdue: Overdue): Promise<void> {
    const { requestId, state, tenantId, keyId, queue, fence, sent, retentionMs: ownMs = retentionMs } = overdue;
    log.warn('A request without a body is ended.', { requestId, tenantId });
    if (state === 'accepted') {
      await admissions.void(requestId, { shard, tenantId, keyId }, LOST);
    } else {
      const ending = { status: 'failed', deltas: [], terminal: LOST, costMicro: 0, retentionMs: ownMs } as const;
      await requests.finish({ shard, requestId, tenantId, keyId, queue, fence }, sent, ending);
    }
    await inflight.forget(shard, requestId);
  }

  /** Its body may be in MongoDB: once it is ended, neither its caller nor a replay finds it for as long as its tombstone is there. */
  async function mayComeBack(overdue: Overdue, isRecovered: boolean): Promise<boolean> {
    return !isRecovered || !(await inTime(recoverLost.isLookedAfter(overdue), RECOVER_MS).catch(() => false));
  }

  /** `isRecovered`: what Redis has lost was looked for in this round. */
  async function sweepOne(shard: number, overdue: Overdue, isRecovered: boolean): Promise<void> {
    const { requestId, state, sent, hasBody, remainingMs, jobPending } = overdue;
    if (state !== 'accepted' && state !== 'running') return inflight.forget(shard, requestId);
    // BullMQ hands the job out again by itself; a request with text only has to be ended, so that need not wait.
    if (jobPending && remainingMs > 0 && sent === 0 && !isExhausted()) {
      const pauseMs = state === 'accepted' ? WAITING_MS : LOOK_AGAIN_MS;
      return inflight.postpone(shard, requestId, Math.min(pauseMs, remainingMs));
    }
    if (!hasBody && state === 'accepted' && (await mayComeBack(overdue, isRecovered)))
      return inflight.postpone(shard, requestId, LOOK_AGAIN_MS);
    if (!hasBody) return endWithoutBody(shard, overdue);
    if (takeovers.size >= TAKEOVERS_MAX) return;
    await inflight.postpone(shard, requestId, LOOK_AGAIN_MS);
    takeOver(shard, overdue);
  }

  /** One request that cannot be swept must not keep the others from it. Returns how many could not. */
  async function sweepAll(shard: number, batch: readonly Overdue[], isRecovered: boolean): Promise<number> {
    let failures = 0;
    for (const overdue of batch) {
      try {
        await sweepOne(shard, overdue, isRecovered);
      } catch (error) {
        failures += 1;
        const { requestId } = overdue;
        log.error('A request could not be swept; the next round tries again.', { requestId, error });
      }
    }
    return failures;
  }

  return {
    async sweepShard(shard) {
      if (hasReconnectedRecently()) return;
      if (!(await leases.hold(shard, TASK))) return;
      // With MongoDB away the rest goes on: a dead lease must not wait for it.
      let isRecovered = true;
      await inTime(recoverLost.round(shard), RECOVER_MS).catch((error: unknown) => {
        log.warn('Looking for lost requests failed; the next round tries again.', { shard, error });
        isRecovered = false;
      });
      // A long queue has thousands that are merely waiting; a dead lease must not wait behind them.
      for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
        if (!(await leases.hold(shard, TASK))) return;
        const overdue = await inflight.overdue(shard, BATCH);
        const failures = await sweepAll(shard, overdue, isRecovered);
        if (overdue.length < BATCH || failures > 0 || takeovers.size >= TAKEOVERS_MAX) return;
      }
    },
    async idle() {
      await Promise.all(takeovers);
    },
    release: (shard) => leases.release(shard, TASK),
  };
}
