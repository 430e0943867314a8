import type { createAdmission } from '../../../shared/requests/admission.ts';
import { REPLAY_RPM } from '../../../shared/requests/admit-arguments.ts';
import { FENCE_UNKNOWN } from '../../../shared/requests/recovery.ts';
import type { Refusal } from '../../../shared/requests/refusals.ts';
import type { RecordStore } from '../../../shared/requests/record-store.ts';
import type { ReplayStore } from '../../../shared/requests/replay-store.ts';
import type { AnswerCache } from '../../../shared/requests/answers.ts';
import { STORED_ANSWER_MS, parseEnvelope, UnreadableError } from '../../../shared/contracts/jobs.ts';
import type { RequestEnvelope, EndedAnswer } from '../../../shared/contracts/jobs.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import type { Logger } from '../../../shared/logging/logger.ts';
import type { AnswerRepository } from '../../../shared/mongo/requests/answer-repository.ts';
import type { FailedIntent, FailedIntents } from '../../../shared/mongo/requests/failed-intents.ts';
import type { PrincipalRepository } from '../../../shared/mongo/tenants/principal-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { REPLAYED, skip } from './replay-rules.ts';
import type { ReplayChecks, ReplayOutcome, SkipReason } from './replay-rules.ts';

const REASON_OF: Partial<Record<Refusal, SkipReason>> = {
  revoked: 'key_revoked',
  suspended: 'account_suspended',
  credits: 'insufficient_credits',
  credits_in_flight: 'insufficient_credits',
  budget: 'budget_exceeded',
  budget_in_flight: 'budget_exceeded',
};

export interface ReplayRequestDeps {
  failed: FailedIntents;
  /** Its `voidLater` does nothing, because the sweep takes care of an admission without an answer. */
  admit: ReturnType<typeof createAdmission>;
  replays: ReplayStore;
  checks: ReplayChecks;
  answers: AnswerRepository;
  cache: AnswerCache;
  principals: PrincipalRepository;
  records: RecordStore;
  clock: Clock;
  log: Logger;
}

/** Retries, because a look-up may restore the old end between two steps. */
const TRIES_MAX = 3;

/** The request limits counted the request when it was accepted; tokens, credits and places are taken again. */
function withoutRequestLimits(principal: Principal): Principal {
  const { limits, ceilings } = principal;
  return {
    ...principal,
    limits: { ...limits, rpm: REPLAY_RPM, chatRpm: REPLAY_RPM, streamRpm: REPLAY_RPM, dailyRequests: 0 },
    ceilings: { ...ceilings, rpm: null },
  };
}

/** The answer is kept for a day from its end, because the acceptance may be hours ago. */
function toReplayed(envelope: RequestEnvelope, failedAt: number, now: number): RequestEnvelope {
  const { kept } = envelope;
  const again = kept?.redisOnly === true ? kept : { ...kept, storedMs: kept?.storedMs ?? STORED_ANSWER_MS };
  // Must be later than the failure, which was timed by another clock: that of Redis.
  return { ...envelope, kept: again, replayedAt: Math.max(now, failedAt + 1) };
}

export type ReplayRequest = (failed: FailedIntent) => Promise<ReplayOutcome>;

function toAdmissionAgain(envelope: RequestEnvelope, principal: Principal) {
  const { requestId, endpoint, stream, retentionMs, acceptedAt, tier, rates, kept, request } = envelope;
  return {
    requestId,
    endpoint,
    stream,
    retentionMs,
    acceptedAt,
    rates,
    answerStorage: {},
    principal: withoutRequestLimits(principal),
    request,
    tier,
    // Callers that waited have already got their error; the answer is looked up, or asked for under its
    // Idempotency-Key.
    channel: '',
    idempotency: kept?.idempotency,
    onDisconnect: 'finish',
    // It may enter the line only with the fence of its last delivery.
    isEnqueuedAtOnce: false,
  } as const;
}

async function putIntoLine(
  { replays, answers, checks, records }: ReplayRequestDeps,
  { shard, failedAt }: FailedIntent,
  envelope: RequestEnvelope,
  principal: Principal,
  fence: number,
): Promise<ReplayOutcome> {
  const { requestId, tenantId, mode } = envelope;
  await replays.requeue(shard, envelope, fence);
  // Removes only the answer of the failure; the next answer may already be there.
  await answers.remove({ tenantId, mode }, requestId, failedAt);
  // A deletion that began meanwhile may have looked for open requests before this one was open again.
  if (!(await checks.isErased(envelope))) return REPLAYED;
  await records.cancel({ ...principal, shard }, requestId);
  return skip('entity_deleted');
}

/** Undoes the replay. MongoDB still has the answer, unless only Redis had it. */
async function putBack(deps: ReplayRequestDeps, failed: FailedIntent, ended: EndedAnswer | undefined): Promise<void> {
  const { clock, cache, failed: intents } = deps;
  const ttlMs = Math.max(1, failed.expiresAt - clock.now());
  if (ended !== undefined) await cache.restore(failed.shard, ended, { ttlMs, namedMs: ttlMs });
  await intents.restore(failed);
}

/**
 * Runs a failed request again under its own id. Of several simultaneous calls, only the one that takes the intent runs
 * it. Until it is in line, the request counts as failed, whatever dies on the way. Throws if a store does not answer:
 * the sweep then finds out where the request is.
 */
export function createReplayRequest(deps: ReplayRequestDeps): ReplayRequest {
  const { failed: intents, checks, admit, replays, cache, principals, clock, log } = deps;

  async function run(failed: FailedIntent, envelope: RequestEnvelope, principal: Principal): Promise<ReplayOutcome> {
    const { shard, requestId } = failed;
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const ended = await cache.read(shard, requestId);
      const reopened = await replays.reopen(shard, envelope);
      if (reopened.kind === 'unchanged') break;
      const outcome = await admit(toAdmissionAgain(envelope, principal));
      if (outcome.kind === 'admitted')
        return putIntoLine(deps, failed, envelope, principal, reopened.fence ?? FENCE_UNKNOWN);
      if (outcome.kind === 'refused' && outcome.verdict === 'void') continue;
      await putBack(deps, failed, ended);
      if (outcome.kind === 'joined') return skip('idempotency_key_reused');
      return skip(REASON_OF[outcome.verdict] ?? 'limit_reached', outcome.figures.retryAfterMs);
    }
    // It is running, or has ended otherwise: the sweep updates its intent.
    return skip('not_replayable');
  }

  return async (failed) => {
    const { requestId, tenantId } = failed;
    try {
      const envelope = parseEnvelope(failed.envelopeJson);
      const principal = await principals.findByKey(tenantId, envelope.keyId);
      const reason = await checks.whyNot(envelope, principal);
      if (principal === undefined || reason !== undefined) return skip(reason ?? 'key_revoked');
      const now = clock.now();
      const again = toReplayed(envelope, failed.failedAt, now);
      if (!(await intents.take(failed, JSON.stringify(again), now))) return skip('not_replayable');
      // The tenant may have been moved since the failure.
      return await run({ ...failed, shard: principal.shard }, again, principal);
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      log.error('A failed request cannot be read.', { requestId, tenantId, error });
      return skip('not_replayable');
    }
  };
}
