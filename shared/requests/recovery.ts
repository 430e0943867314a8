import { LOST, encodeEntry, eventsOf } from '../contracts/events.ts';
import type { Terminal } from '../contracts/events.ts';
import { queueOf, STORED_ANSWER_MS, UnreadableError, nameOf, parseEnvelope } from '../contracts/jobs.ts';
import type { RequestEnvelope, EndedAnswer, StoredAnswer } from '../contracts/jobs.ts';
import type { OnEarlyEnd } from '../contracts/settlement.ts';
import type { Principal } from '../domain/principal.ts';
import { endOf, outageOf, seqAt } from '../domain/request-times.ts';
import { createErasureGate, gateAnswers } from '../erasure-gate.ts';
import type { ErasureGate } from '../erasure-gate.ts';
import { toErrorDetail } from '../errors/error-body.ts';
import type { Clock } from '../lifecycle/clock.ts';
import type { Logger } from '../logging/logger.ts';
import { createAccountRepository } from '../mongo/accounts/account-repository.ts';
import { createLedgerRepository } from '../mongo/accounts/ledger-repository.ts';
import type { LedgerRepository } from '../mongo/accounts/ledger-repository.ts';
import { createErasureRepository } from '../mongo/compliance/erasure-repository.ts';
import { createAnswerRepository } from '../mongo/requests/answer-repository.ts';
import type { AnswerRepository } from '../mongo/requests/answer-repository.ts';
import { createFailedIntents } from '../mongo/requests/failed-intents.ts';
import type { FailedIntents } from '../mongo/requests/failed-intents.ts';
import { createRequestIntents } from '../mongo/requests/request-intents.ts';
import type { RequestIntent, RequestIntents } from '../mongo/requests/request-intents.ts';
import { createPrincipalRepository } from '../mongo/tenants/principal-repository.ts';
import type { PrincipalRepository } from '../mongo/tenants/principal-repository.ts';
import type { ProcessParts } from '../process-parts.ts';
import type { AccountStore } from '../redis/stores/account-store.ts';
import type { TimeLimit } from '../redis/time-limits.ts';
import type { AdmissionStore } from './admission-store.ts';
import { createAdmission } from './admission.ts';
import { createAnswerCache } from './answers.ts';
import type { AnswerCache } from './answers.ts';
import { createQueueOrderStore } from './body-store.ts';
import type { QueueOrderStore } from './body-store.ts';
import { toRefusal } from './refusals.ts';
import type { Refusal } from './refusals.ts';
import { createReplayStore } from './replay-store.ts';
import type { ReplayStore } from './replay-store.ts';
import { createRequestPresence } from './rollback.ts';
import type { RequestPresence } from './rollback.ts';

type RecoveryOutcome =
  /** Redis has the open request, queued after `waitMs` unless its worker lives. */
  | { kind: 'open'; waitMs?: number }
  /** In this call or before. */
  | { kind: 'ended' }
  /** It cannot be accepted again now. */
  | { kind: 'later'; waitMs: number };

export type RecoverRequest = (intent: RequestIntent) => Promise<RecoveryOutcome>;

export interface RecoverRequestDeps {
  presence: RequestPresence;
  /** Its `voidLater` does nothing: an unanswered admission is repeated, never voided. */
  admit: ReturnType<typeof createAdmission>;
  queueOrder: QueueOrderStore;
  replays: ReplayStore;
  intents: RequestIntents;
  admissions: AdmissionStore;
  /** `store` passes the erasure gate. */
  answers: AnswerRepository;
  gate: ErasureGate;
  ledger: LedgerRepository;
  principals: Pick<PrincipalRepository, 'findByKey'>;
  onEarlyEnd?: OnEarlyEnd | undefined;
  clock: Clock;
  log: Logger;
}

/** Waiting does not change these. Only they end a request that was accepted once. */
const FINAL: ReadonlySet<Refusal> = new Set(['revoked', 'suspended', 'credits', 'budget']);
/** Above the unknown deliveries of a request that ran before Redis lost it, and below later ones. */
export const FENCE_UNKNOWN = 2;
/**
 * A living worker tells Redis of its request every 3 s, and so restores it. Until then the request is admitted without
 * a job, so that no other worker can start it.
 */
const ALIVE_MS = 4_000;
const WAIT_MIN_MS = 1_000;
const WAIT_MAX_MS = 60_000;

/** `now`: milliseconds since the epoch. */
function toStoredEnd(envelope: RequestEnvelope, last: Terminal, now: number) {
  const { requestId, tenantId, mode, tier, acceptedAt, request, retentionMs, kept } = envelope;
  const lastSeq = eventsOf(last);
  const ownMs = kept?.redisOnly === true ? retentionMs : kept?.storedMs;
  return {
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
      model: nameOf(envelope) ?? '',
      metadata: request.metadataJson ?? '',
      lastSeq: String(lastSeq),
      acceptedAt: String(acceptedAt),
      finishedAt: String(now),
    },
    entries: [{ lastSeq, payload: encodeEntry([], last) }],
    expiresAt: ownMs === undefined ? acceptedAt + STORED_ANSWER_MS : now + ownMs,
  };
}

function toAdmissionAgain(envelope: RequestEnvelope, principal: Principal) {
  const { requestId, endpoint, stream, retentionMs, acceptedAt, tier, rates, kept, request } = envelope;
  return {
    requestId,
    principal,
    endpoint,
    stream,
    retentionMs,
    acceptedAt,
    rates,
    request,
    tier,
    // The caller is gone; the answer is looked up, or asked for under its key.
    channel: '',
    idempotency: kept?.idempotency,
    onDisconnect: 'finish',
    answerStorage: {},
    // `enqueue` follows in a later round, unless the request's worker lives.
    isEnqueuedAtOnce: false,
  } as const;
}

/** `since`: an earlier end belongs to the failed run that this one repeats. */
async function isKnown(
  { answers, ledger, clock }: RecoverRequestDeps,
  { tenantId, requestId }: RequestIntent,
  since: number,
): Promise<boolean> {
  const anywhere = { tenantId, mode: 'any' } as const;
  const answer = await answers.find(anywhere, requestId, clock.now());
  if (answer !== undefined && Number(answer.fields['finishedAt']) >= since) return true;
  return (await ledger.settledAt(anywhere, requestId)) !== undefined;
}

/** Readers find the end as a stored answer. */
async function end(deps: RecoverRequestDeps, envelope: RequestEnvelope, last: Terminal): Promise<void> {
  const { answers, onEarlyEnd, clock, log } = deps;
  const { requestId, tenantId } = envelope;
  await answers.store(toStoredEnd(envelope, last, clock.now()));
  onEarlyEnd?.(envelope, { code: last.error?.code, reason: 'lost by Redis, and not accepted again' });
  log.warn('A request that Redis had lost could not be accepted again and was ended.', { requestId, tenantId });
}

/** A deletion while this process slept missed a request lost by Redis; one with a later mark finds all of it. */
async function voidIfErased(deps: RecoverRequestDeps, shard: number, envelope: RequestEnvelope): Promise<boolean> {
  const { gate, admissions } = deps;
  const { requestId, tenantId, keyId, acceptedAt, request } = envelope;
  if (!(await gate.isErased(envelope, request.entityId, seqAt(acceptedAt)))) return false;
  await admissions.void(requestId, { shard, tenantId, keyId }, LOST, { reason: 'deleted while it waited' });
  return true;
}

async function enqueue(
  deps: RecoverRequestDeps,
  { shard, replays: replayed }: RequestIntent,
  envelope: RequestEnvelope,
): Promise<RecoveryOutcome> {
  const { requestId, tenantId, endpoint, acceptedAt } = envelope;
  const { replays, presence, queueOrder, log } = deps;
  if (await voidIfErased(deps, shard, envelope)) return { kind: 'ended' };
  // The worker in which it failed may still be alive.
  if (replayed > 0) await replays.requeue(shard, envelope, FENCE_UNKNOWN);
  else {
    // Also needed without a body: the process that admitted the request again may have died before this.
    await presence.setAcceptedAt(shard, requestId, acceptedAt);
    await queueOrder.enqueue(shard, queueOf(endpoint), { requestId, tenantId, body: JSON.stringify(envelope) });
  }
  log.warn('Redis had lost a request that was accepted; it was accepted again.', { requestId, tenantId });
  return { kind: 'open' };
}

async function admitAgain(
  deps: RecoverRequestDeps,
  intent: RequestIntent,
  envelope: RequestEnvelope,
  principal: Principal,
): Promise<RecoveryOutcome> {
  const { intents, admit, presence, clock } = deps;
  const { requestId, replays: replayed } = intent;
  // Before anybody can find the request without its body.
  await intents.postpone([requestId], clock.now() + ALIVE_MS);
  const outcome = await admit(toAdmissionAgain(envelope, principal));
  if (outcome.kind === 'admitted') {
    // The envelope keeps the settings of the first acceptance; `requeue` sets the time, too.
    if (replayed === 0) await presence.setAcceptedAt(principal.shard, requestId, envelope.acceptedAt);
    return (await voidIfErased(deps, principal.shard, envelope))
      ? { kind: 'ended' }
      : { kind: 'open', waitMs: ALIVE_MS };
  }
  if (outcome.kind === 'joined') {
    // Its Idempotency-Key belongs to a later request by now.
    await end(deps, envelope, LOST);
    return { kind: 'ended' };
  }
  const { figures, verdict } = outcome;
  // Another process was faster.
  if (verdict === 'void') return { kind: 'open' };
  if (!FINAL.has(verdict))
    return { kind: 'later', waitMs: Math.min(WAIT_MAX_MS, Math.max(WAIT_MIN_MS, figures.retryAfterMs)) };
  const error = toErrorDetail(toRefusal({ ...figures, verdict }, principal, envelope.endpoint));
  await end(deps, envelope, { finishReason: 'error', usage: { promptTokens: 0, completionTokens: 0 }, error });
  return { kind: 'ended' };
}

/**
 * Accepts a request that Redis lost again, under its own id. The ledger has one entry per id, so it is charged once
 * whatever became of it. Safe to repeat and to run in several processes at once.
 */
export function createRecoverRequest(deps: RecoverRequestDeps): RecoverRequest {
  const { presence, principals, clock, log } = deps;

  return async (intent) => {
    const { requestId, tenantId, shard } = intent;
    const [found] = await presence.look(shard, [requestId]);
    if (found === 'open') return { kind: found };
    if (found === 'ended' || found === 'failed') return { kind: 'ended' };
    try {
      const envelope = parseEnvelope(intent.envelopeJson);
      // A record without a body was admitted again, so only an end after that counts.
      const since = found === 'bodiless' ? (envelope.replayedAt ?? 0) : 0;
      if (await isKnown(deps, intent, since)) return { kind: 'ended' };
      if (found === 'bodiless') {
        const isDue = (intent.lookAt ?? 0) <= clock.now();
        return isDue ? await enqueue(deps, intent, envelope) : { kind: 'open' };
      }
      const principal = await principals.findByKey(tenantId, envelope.keyId);
      if (principal !== undefined) return await admitAgain(deps, intent, envelope, principal);
      await end(deps, envelope, LOST);
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      log.error('A request that Redis had lost cannot be read.', { requestId, tenantId, error });
    }
    return { kind: 'ended' };
  };
}

interface ConcludeIntentDeps {
  intents: RequestIntents;
  failed: FailedIntents;
  /** `store` passes the erasure gate. */
  answers: AnswerRepository;
  cache: AnswerCache;
  /** For Redis, where MongoDB has the answer as well. */
  retentionMs: number;
  clock: Clock;
}

export type ConcludeIntent = (intent: RequestIntent) => Promise<void>;

/** Undefined: Redis alone keeps it. As in finish.lua, an end without an answer frees its key for a retry. */
export function toStoredAnswer(
  ended: EndedAnswer,
  { mode, kept, acceptedAt, request }: RequestEnvelope,
  hasText: boolean,
): StoredAnswer | undefined {
  if (kept === undefined || kept.redisOnly === true) return undefined;
  const { idempotency, storedMs } = kept;
  const isRemembered = ended.fields['status'] === 'completed' || hasText;
  return {
    ...ended,
    mode,
    ...(request.entityId === undefined ? {} : { entityId: request.entityId }),
    ...(idempotency !== undefined && isRemembered ? { idempotency } : {}),
    expiresAt: storedMs === undefined ? acceptedAt + STORED_ANSWER_MS : Number(ended.fields['finishedAt']) + storedMs,
  };
}

/**
 * Concludes an ended request's intent: stores the answer in MongoDB, if its worker died or was cut off before, and
 * deletes the intent. After an outage the intent is kept as long as the answer, for an operator to run the request
 * again. A new run's intent stays. Safe to repeat.
 */
function createConcludeIntent({
  intents,
  failed,
  answers,
  cache,
  retentionMs,
  clock,
}: ConcludeIntentDeps): ConcludeIntent {
  async function storeIfMissing(
    shard: number,
    ended: EndedAnswer,
    stored: StoredAnswer | undefined,
    envelope: RequestEnvelope,
  ) {
    if (stored?.fields['finishedAt'] === ended.fields['finishedAt']) return;
    const answer = toStoredAnswer(ended, envelope, endOf(ended).hasText);
    if (answer === undefined || answer.expiresAt <= clock.now()) return;
    await answers.store(answer);
    await cache.shorten(shard, ended, retentionMs);
  }

  async function concludeReadable(intent: RequestIntent, envelope: RequestEnvelope): Promise<void> {
    const { requestId, tenantId, shard } = intent;
    const [cached, stored] = await Promise.all([
      cache.read(shard, requestId),
      answers.find({ tenantId, mode: 'any' }, requestId, clock.now()),
    ]);
    if (cached !== undefined) await storeIfMissing(shard, cached, stored, envelope);
    const ended = cached ?? stored;
    const end = ended === undefined ? undefined : endOf(ended);
    const code = end === undefined ? undefined : outageOf(end);
    if (ended === undefined || code === undefined) return intents.forgetRun(intent);
    const at = Number(ended.fields['finishedAt']);
    const ownMs = envelope.kept?.redisOnly === true ? envelope.retentionMs : envelope.kept?.storedMs;
    await failed.keepFailed(intent, { at, code, ...(ownMs === undefined ? {} : { keptUntil: at + ownMs }) });
  }

  return async (intent) => {
    try {
      await concludeReadable(intent, parseEnvelope(intent.envelopeJson));
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      await intents.forgetRun(intent);
    }
  };
}

export interface RecoveryParts extends ProcessParts {
  admissions: AdmissionStore;
  accountStore: AccountStore;
  onEarlyEnd: OnEarlyEnd;
}

export type Recovery = ReturnType<typeof openRecovery>;

export function openRecovery(parts: RecoveryParts, limit: TimeLimit) {
  const { mongo, redis, keyspace, memory, admissions, pseudonyms, requestTimeoutMs, clock } = parts;
  const presence = createRequestPresence(redis, keyspace, limit);
  const admit = createAdmission({
    ...parts,
    store: admissions,
    accounts: createAccountRepository(mongo),
    isFull: memory.isFull,
    voidLater: () => undefined,
  });
  const replays = createReplayStore(redis, keyspace, { requestTimeoutMs, limit });
  const gate = createErasureGate({ erasures: createErasureRepository(mongo), pseudonyms });
  const answers = gateAnswers(createAnswerRepository(mongo), gate);
  const intents = createRequestIntents(mongo);
  const conclude = createConcludeIntent({
    answers,
    clock,
    intents,
    retentionMs: parts.retentionMs,
    failed: createFailedIntents(mongo),
    cache: createAnswerCache(redis, keyspace),
  });
  const recover = createRecoverRequest({
    ...parts,
    presence,
    admit,
    replays,
    intents,
    queueOrder: createQueueOrderStore(redis, keyspace, requestTimeoutMs),
    answers,
    gate,
    ledger: createLedgerRepository(mongo),
    principals: createPrincipalRepository(mongo),
  });
  return { recover, conclude, presence, admit, replays };
}
