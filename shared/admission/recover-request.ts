import { encodeEntry, eventsOf, LOST } from '../contracts/events.ts';
import type { Terminal } from '../contracts/events.ts';
import { queueOf } from '../contracts/jobs.ts';
import type { RequestEnvelope } from '../contracts/jobs.ts';
import type { ErasureGate } from '../compliance/erasure-gate.ts';
import { STORED_ANSWER_MS } from '../contracts/stored-answer.ts';
import { parseEnvelope, UnreadableError } from '../contracts/stored-request.ts';
import type { Principal } from '../domain/keys/principal.ts';
import { seqAt } from '../domain/requests/acceptance-order.ts';
import { toErrorDetail } from '../errors/error-body.ts';
import type { Logger } from '../infra/logging/logger.ts';
import type { LedgerRepository } from '../infra/mongo/accounts/ledger-repository.ts';
import type { AnswerRepository } from '../infra/mongo/requests/answer-repository.ts';
import type { RequestIntent } from '../infra/mongo/requests/request-intents.ts';
import type { PrincipalRepository } from '../infra/mongo/tenants/principal-repository.ts';
import type { AdmissionStore } from '../infra/redis/requests/admission-store.ts';
import type { LineStore } from '../infra/redis/requests/line-store.ts';
import type { ReplayStore } from '../infra/redis/requests/replay-store.ts';
import type { RequestPresence } from '../infra/redis/requests/request-presence.ts';
import type { Clock } from '../lifecycle/clock.ts';
import type { createAdmission } from './admission.ts';
import { toRefusal } from './refusals.ts';
import type { Refusal } from './refusals.ts';

type Recovery =
  /** Redis has the request, and it has not ended. */
  | { kind: 'open' }
  /** It has ended, in this call or before. */
  | { kind: 'ended' }
  /** It cannot be accepted again now. */
  | { kind: 'later'; waitMs: number };

export type RecoverRequest = (intent: RequestIntent) => Promise<Recovery>;

export interface RecoverRequestDeps {
  presence: RequestPresence;
  /** Its `takeBack` does nothing: an admission without an answer is tried again, and never voided. */
  admit: ReturnType<typeof createAdmission>;
  line: Pick<LineStore, 'enqueue'>;
  replays: Pick<ReplayStore, 'requeue'>;
  /** Voids a request that must not run. */
  admissions: Pick<AdmissionStore, 'void'>;
  /** `store` passes the erasure gate. */
  answers: Pick<AnswerRepository, 'find' | 'store'>;
  gate: Pick<ErasureGate, 'isErased'>;
  ledger: Pick<LedgerRepository, 'settledAt'>;
  principals: Pick<PrincipalRepository, 'findByKey'>;
  clock: Clock;
  log: Logger;
}

/** Refusals that waiting does not change. Only these end a request that was accepted once. */
const FINAL: ReadonlySet<Refusal> = new Set(['revoked', 'suspended', 'credits', 'budget']);
/** The fence of a request that ran before Redis lost it: its deliveries are unknown, and later ones have higher fences. */
export const FENCE_UNKNOWN = 2;
const WAIT_MIN_MS = 1_000;
const WAIT_MAX_MS = 60_000;

/**
 * Accepts a request that Redis lost after its acceptance again, under its own id. The ledger has one entry per id, so the
 * request is charged once whatever became of it before. Safe to repeat and to run in several processes at once.
 */
export function createRecoverRequest(deps: RecoverRequestDeps): RecoverRequest {
  const { presence, admit, admissions, line, replays, answers, gate, ledger, principals, clock, log } = deps;

  /** Stores the end as a stored answer, where readers find it. */
  async function end(envelope: RequestEnvelope, last: Terminal) {
    const { requestId, tenantId, mode, tier, acceptedAt, request, retentionMs, kept } = envelope;
    const lastSeq = eventsOf(last);
    const ownMs = kept?.redisOnly === true ? retentionMs : kept?.storedMs;
    await answers.store({
      requestId,
      tenantId,
      mode,
      ...(request.entityId === undefined ? {} : { entityId: request.entityId }),
      fields: {
        tenant: tenantId,
        billed: mode === 'test' ? '0' : '1',
        state: 'done',
        status: 'failed',
        tier,
        metadata: request.metadataJson ?? '',
        sent: String(lastSeq),
        acceptedAt: String(acceptedAt),
        finishedAt: String(clock.now()),
      },
      entries: [{ lastSeq, payload: encodeEntry([], last) }],
      expiresAt: ownMs === undefined ? acceptedAt + STORED_ANSWER_MS : clock.now() + ownMs,
    });
    log.warn('A request that Redis had lost could not be accepted again and was ended.', { requestId, tenantId });
  }

  async function enqueue({ shard, replays: replayed }: RequestIntent, envelope: RequestEnvelope): Promise<Recovery> {
    const { requestId, tenantId, keyId, endpoint, acceptedAt, request } = envelope;
    // A deletion that ran while this process was suspended did not know a request that Redis had lost; one that sets its
    // mark later finds what has been written by then.
    if (await gate.isErased(envelope, request.entityId, seqAt(acceptedAt))) {
      await admissions.void(requestId, { shard, tenantId, keyId }, LOST);
      return { kind: 'ended' };
    }
    // The worker in which it failed may still be alive.
    if (replayed > 0) await replays.requeue(shard, envelope, FENCE_UNKNOWN);
    else {
      // Needed for a request found without its body, too: the process that admitted it again may have died before this.
      await presence.setAcceptedAt(shard, requestId, acceptedAt);
      await line.enqueue(shard, queueOf(endpoint), { requestId, tenantId, body: JSON.stringify(envelope) });
    }
    log.warn('Redis had lost a request that was accepted; it was accepted again.', { requestId, tenantId });
    return { kind: 'open' };
  }

  async function admitAgain(intent: RequestIntent, envelope: RequestEnvelope, principal: Principal): Promise<Recovery> {
    const { requestId, endpoint, stream, retentionMs, acceptedAt, tier, rates, kept } = envelope;
    const outcome = await admit({
      requestId,
      principal,
      endpoint,
      stream,
      retentionMs,
      acceptedAt,
      rates,
      request: { ...envelope.request, model: tier },
      // No caller is waiting any more; the answer is looked up, or asked for under its key.
      channel: '',
      idempotency: kept?.idempotency,
      onDisconnect: 'finish',
      answerStorage: {},
      // `enqueue` follows once the record has the time of its first acceptance.
      isEnqueuedAtOnce: false,
    });
    // The envelope keeps time and settings of the first acceptance.
    if (outcome.kind === 'admitted') return enqueue({ ...intent, shard: principal.shard }, envelope);
    if (outcome.kind === 'joined') {
      // Its Idempotency-Key belongs to a later request by now.
      await end(envelope, LOST);
      return { kind: 'ended' };
    }
    const { figures, verdict } = outcome;
    // Another process was faster.
    if (verdict === 'void') return { kind: 'open' };
    if (!FINAL.has(verdict))
      return { kind: 'later', waitMs: Math.min(WAIT_MAX_MS, Math.max(WAIT_MIN_MS, figures.retryAfterMs)) };
    const error = toErrorDetail(toRefusal({ ...figures, verdict }, principal, endpoint));
    await end(envelope, { finishReason: 'error', usage: { promptTokens: 0, completionTokens: 0 }, error });
    return { kind: 'ended' };
  }

  /** `since`: an earlier end belongs to the failed run that this one repeats. */
  async function isKnown({ tenantId, requestId }: RequestIntent, since: number): Promise<boolean> {
    const anywhere = { tenantId, mode: 'any' } as const;
    const answer = await answers.find(anywhere, requestId, clock.now());
    if (answer !== undefined && Number(answer.fields['finishedAt']) >= since) return true;
    return (await ledger.settledAt(anywhere, requestId)) !== undefined;
  }

  return async (intent) => {
    const { requestId, tenantId, shard } = intent;
    const [found] = await presence.look(shard, [requestId]);
    if (found === 'open') return { kind: found };
    if (found === 'ended' || found === 'failed') return { kind: 'ended' };
    try {
      const envelope = parseEnvelope(intent.envelopeJson);
      // A record without a body was admitted again, so only an end after that counts.
      const since = found === 'bodiless' ? (envelope.replayedAt ?? 0) : 0;
      if (await isKnown(intent, since)) return { kind: 'ended' };
      if (found === 'bodiless') return await enqueue(intent, envelope);
      const principal = await principals.findByKey(tenantId, envelope.keyId);
      if (principal !== undefined) return await admitAgain(intent, envelope, principal);
      await end(envelope, LOST);
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      log.error('A request that Redis had lost cannot be read.', { requestId, tenantId, error });
    }
    return { kind: 'ended' };
  };
}
