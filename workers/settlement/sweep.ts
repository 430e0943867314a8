/**
 * Every 2 s the worker that leads a shard ends requests whose time in `inflight` is over.
 *
 * - An admission that was not enqueued within 10 s is voided. A job that BullMQ still has is left to BullMQ.
 * - A request whose worker is gone is taken over under the next fence. One that is past its deadline, or has outlived
 *   three deliveries, is ended.
 * - A lease more than a minute ahead, because a clock was put back, is cut to 10 s.
 *
 * Before that it goes through the intents in MongoDB (recover-lost.ts): those of ended requests are deleted once
 * MongoDB has their answers, and requests that Redis has lost are accepted again under their own ids. Failed ones stay
 * for a day, for a replay.
 */
import { LOST } from '../../shared/contracts/events.ts';
import type { OnEarlyEnd } from '../../shared/contracts/settlement.ts';
import type { AdmissionStore } from '../../shared/requests/admission-store.ts';
import type { Inflight, Overdue } from '../../shared/requests/overdue.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import { inTime } from '../../shared/redis/time-limits.ts';
import type { RequestStore } from '../../shared/requests/delivery-store.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { HandedRequest } from '../pipeline/stage.ts';
import type { RecoverLost } from './recover-lost.ts';

export interface SweepDeps {
  inflight: Inflight;
  admissions: AdmissionStore;
  requests: RequestStore;
  leases: LeaderLease;
  onEarlyEnd?: OnEarlyEnd | undefined;
  runPipeline: (handed: HandedRequest) => Promise<unknown>;
  /** Recovers what Redis has lost. Comes first, as the sweep ends requests without a body. */
  recoverLost: RecoverLost;
  /** The end of a request is kept this long for its reader. */
  retentionMs: number;
  /** The shard's Redis has just come back: leases have run out although their workers live. */
  hasReconnectedRecently: (shard: number) => boolean;
  /** Redis's memory is used up, so the queue can hand out no job: the sweep runs what waits. */
  isExhausted: () => boolean;
  log: Logger;
}

const TASK = 'sweep';
const BATCH = 100;
const BATCHES_MAX = 50;
const LOOK_AGAIN_MS = 5_000;
const RECOVER_MS = 1_000;
/** A request whose job waits in line is looked at again after this time. */
const WAITING_MS = 30_000;
/** Requests that this process runs besides those of the queue. */
const TAKEOVERS_MAX = 50;
/** After this many deliveries a request is ended instead of run again, as it may be what kills workers. */
const DELIVERIES_MAX = 3;

export type Sweep = ReturnType<typeof createSweep>;

/** The end of a request for which no text was generated that could be priced. */
const ENDED = { status: 'failed', deltas: [], terminal: LOST, costMicro: 0 } as const;

interface Round {
  /** It has looked for requests that Redis has lost, in the intents of MongoDB. */
  hasLookedForLost: boolean;
}

/** A request without a body can be neither run nor priced, so it is ended and its hold given back. */
async function endWithoutBody(deps: SweepDeps, shard: number, overdue: Overdue): Promise<void> {
  const { inflight, admissions, requests, onEarlyEnd, retentionMs, log } = deps;
  const { requestId, state, tenantId, keyId, queue, fence, sent, retentionMs: ownMs = retentionMs, facts } = overdue;
  const how = { code: LOST.error?.code, reason: 'its body was lost' };
  log.warn('A request without a body is ended.', { requestId, tenantId });
  if (state === 'accepted') {
    await admissions.void(requestId, { shard, tenantId, keyId }, LOST, how);
  } else {
    const ref = { shard, requestId, tenantId, keyId, queue, fence };
    const isEnded = await requests.finish(ref, sent, { ...ENDED, retentionMs: ownMs });
    if (isEnded) onEarlyEnd?.({ requestId, tenantId, keyId, ...facts }, how);
  }
  await inflight.forget(shard, requestId);
}

/** True if MongoDB may have the body: an end would leave a tombstone that hides it from its caller and replays. */
async function mayComeBack(deps: SweepDeps, overdue: Overdue, { hasLookedForLost }: Round): Promise<boolean> {
  const { recoverLost } = deps;
  return !hasLookedForLost || (await inTime(recoverLost.makeDue(overdue), RECOVER_MS).catch(() => true));
}

function createTakeovers({ runPipeline, log }: SweepDeps) {
  const running = new Set<Promise<unknown>>();

  /** Runs in the background, as a request may take minutes. */
  function start(shard: number, { requestId, tenantId, fence, deliveries }: Overdue): void {
    log.warn('A request without a living worker is taken over.', { requestId, tenantId, fence: fence + 1 });
    const handed = { shard, requestId, tenantId, fence: fence + 1, endOnly: deliveries >= DELIVERIES_MAX };
    const takeover = runPipeline(handed)
      .catch((error: unknown) => {
        log.error('A request could not be taken over; a later round tries again.', { requestId, error });
      })
      .finally(() => running.delete(takeover));
    running.add(takeover);
  }

  return {
    start,
    isFull: (): boolean => running.size >= TAKEOVERS_MAX,
    async idle(): Promise<void> {
      await Promise.all(running);
    },
  };
}

function createSweepOne(deps: SweepDeps, takeovers: ReturnType<typeof createTakeovers>) {
  const { inflight, isExhausted } = deps;
  return async function sweepOne(shard: number, overdue: Overdue, round: Round): Promise<void> {
    const { requestId, state, sent, hasBody, remainingMs, jobPending } = overdue;
    if (state !== 'accepted' && state !== 'running') return inflight.forget(shard, requestId);
    // BullMQ still has the job and hands it out again. A request of which text was sent is not left to it: it can only
    // be ended.
    if (jobPending && remainingMs > 0 && sent === 0 && !isExhausted()) {
      const pauseMs = state === 'accepted' ? WAITING_MS : LOOK_AGAIN_MS;
      return inflight.postpone(shard, requestId, Math.min(pauseMs, remainingMs));
    }
    if (!hasBody && state === 'accepted' && (await mayComeBack(deps, overdue, round)))
      return inflight.postpone(shard, requestId, LOOK_AGAIN_MS);
    if (!hasBody) return endWithoutBody(deps, shard, overdue);
    if (takeovers.isFull()) return;
    await inflight.postpone(shard, requestId, LOOK_AGAIN_MS);
    takeovers.start(shard, overdue);
  };
}

/** Ends what nobody else ends: dead leases, passed deadlines, admissions without a job, jobs that BullMQ gave up. */
export function createSweep(deps: SweepDeps) {
  const { inflight, leases, recoverLost, hasReconnectedRecently, log } = deps;
  const takeovers = createTakeovers(deps);
  const sweepOne = createSweepOne(deps, takeovers);

  /** Returns the number of failures: a request that cannot be swept does not stop the others. */
  async function sweepAll(shard: number, batch: readonly Overdue[], round: Round): Promise<number> {
    let failures = 0;
    for (const overdue of batch) {
      try {
        await sweepOne(shard, overdue, round);
      } catch (error) {
        failures += 1;
        const { requestId } = overdue;
        log.error('A request could not be swept; the next round tries again.', { requestId, error });
      }
    }
    return failures;
  }

  return {
    async sweepShard(shard: number): Promise<void> {
      if (hasReconnectedRecently(shard)) return;
      if (!(await leases.hold(shard, TASK))) return inflight.watchClock(shard);
      const round: Round = { hasLookedForLost: true };
      // If MongoDB is away the sweep goes on: dead leases must not wait.
      await inTime(recoverLost.round(shard), RECOVER_MS).catch((error: unknown) => {
        log.warn('Looking for lost requests failed; the next round tries again.', { shard, error });
        round.hasLookedForLost = false;
      });
      // Batch after batch: thousands of overdue requests may only be waiting in line, with dead leases behind them.
      for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
        if (!(await leases.hold(shard, TASK))) return;
        const overdue = await inflight.overdue(shard, BATCH);
        const failures = await sweepAll(shard, overdue, round);
        if (overdue.length < BATCH || failures > 0 || takeovers.isFull()) return;
      }
    },
    idle: takeovers.idle,
    /** Gives up the lead, so that another process can sweep at once. */
    release: (shard: number): Promise<void> => leases.release(shard, TASK),
  };
}
