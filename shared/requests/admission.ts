/**
 * The door of `shared/requests`: the life of a chat request in Redis, of which each step is one Lua script.
 *
 * - **admit** (admission-store.ts): checks flags, Idempotency-Key, limits, credits, budget and the queue's length; then
 *   writes hold, record, body and job, or nothing. A 429 takes nothing; a 402, a suspended tenant's 403 and a full
 *   queue's 503 take the request count.
 * - **enqueue** (enqueue.ts): brings body and job, if the body is large or MongoDB must have the request first. An
 *   error there means "unknown": the admission is voided, before the caller gets 503 or in the background.
 * - **take, claim** (delivery-store.ts, workers/queue/job-source.ts): the higher fence owns the request.
 * - **append, renew, finish** (delivery-store.ts, finish-request.ts): written only for that fence and claim. Finish
 *   writes the last event, the pending charge and the settlement record, and ends the job.
 * - **settle** (outbox.ts), **sweep** (overdue.ts, recovery.ts): booking, and the end of all that nobody else ends.
 *
 * Record, body, stream and job share the shard's hash tag (docs/architecture/redis-keys.md). States only move forward
 * (docs/architecture/states.md). Ids, fences and the record's state make every step safe to repeat; living processes
 * write again what Redis has lost (rollback.ts, docs/decisions/0007-redis-data-loss.md).
 *
 * Tokens are estimated from the prompt's bytes, without a tokenizer on the ingress, and corrected by the worker. To
 * reserve the whole default `max_tokens` would stop a default key at 23 requests a minute.
 */
import { bytesOfVector } from '../contracts/chat-request.ts';
import type { ChatRequest, Tier } from '../contracts/chat-request.ts';
import { nameOf, queueOf } from '../contracts/jobs.ts';
import type { AnswerStorage, RequestEnvelope } from '../contracts/jobs.ts';
import { mediaTokensOf, textOf, textsBeside } from '../contracts/message-text.ts';
import { bytesOf } from '../contracts/parse.ts';
import type { Pseudonyms } from '../domain/pseudonyms.ts';
import type { Principal } from '../domain/principal.ts';
import { BYTES_PER_TOKEN, vectorTokens } from '../domain/pricing.ts';
import { timeOfSeq } from '../domain/request-times.ts';
import { DEFAULT_RATES, fitRequest, tierOf } from '../domain/routing.ts';
import type { Rates } from '../domain/routing.ts';
import { ServiceError } from '../errors/service-error.ts';
import type { Logger } from '../logging/logger.ts';
import type { AccountRepository } from '../mongo/accounts/account-repository.ts';
import type { RoutingCache } from '../mongo/routing/routing-cache.ts';
import type { AccountStore } from '../redis/stores/account-store.ts';
import type { Admission, AdmissionStore } from './admission-store.ts';
import type { AdmissionRequest, AdmissionTerms } from './admit-arguments.ts';
import { admissionUnanswered, noRoom } from './refusals.ts';
import type { Refusal } from './refusals.ts';
import { isOutOfMemory } from '../redis/memory-watch.ts';
import type { Clock } from '../lifecycle/clock.ts';

export interface AdmissionDeps {
  store: AdmissionStore;
  accounts: AccountRepository;
  accountStore: AccountStore;
  routing: RoutingCache;
  /** No room for new requests, or for large bodies. */
  isFull: (isLarge: boolean) => boolean;
  /** Voids the admission in the background. `isRefused`: there is probably nothing to void. */
  voidLater: (requestId: string, principal: Principal, isRefused: boolean) => void;
  pseudonyms: Pseudonyms;
  clock: Clock;
  log: Logger;
}

export interface AdmissionCall extends Omit<AdmissionRequest, Exclude<keyof AdmissionTerms, 'countedTokens'>> {
  /** The tier that the request already has. Absent: that of its model. */
  tier?: Tier;
  stream: boolean;
  request: ChatRequest;
  /** Counted by `bytesOf`, which takes long for a large request. */
  bytes?: number;
  /** Redis keeps the answer this long after its end; milliseconds. */
  retentionMs: number;
  /** Undefined: only Redis has the answer, as a stream; a request that it loses is not admitted again. */
  answerStorage: AnswerStorage | undefined;
  /** The first acceptance's, if the request is admitted again. Absent: those of now. */
  rates?: Rates | undefined;
  /** False: the caller queues the request later. */
  isEnqueuedAtOnce: boolean;
  /** See RequestEnvelope. */
  traceparent?: string | undefined;
}

interface Outcomes {
  /** Unless `isQueued`, the caller queues the envelope. */
  admitted: { envelope: RequestEnvelope; isQueued: boolean };
  joined: { requestId: string; fingerprint: string };
  refused: { verdict: Refusal };
}

/** `figures` are for the rate-limit headers. */
export type AdmissionOutcome<Kind extends keyof Outcomes = keyof Outcomes> = {
  [K in Kind]: { kind: K; figures: Admission } & Outcomes[K];
}[Kind];

/** A larger body follows the admission, so that a flood of refusals does not carry bodies. */
const BODY_BYTES_MAX = 128 * 1024;
/** Larger bodies count for their tenant's open requests; a thousand smaller ones may stay. */
const LARGE_BYTES = 256 * 1024;

/** A quarter of all text's bytes, rounded up, plus what is not text: the ingress has no tokenizer. */
export function estimatePromptTokens(request: ChatRequest): number {
  let bytes = 0;
  if (request.task?.kind === 'embedding' && request.task.isTokens === true)
    return request.messages.reduce((sum, { content }) => sum + content.split(',').length, 0);
  let tokens = 0;
  for (const message of request.messages) {
    bytes += Buffer.byteLength(textOf(message));
    if (message.sent !== undefined) tokens += mediaTokensOf(message);
  }
  for (const text of textsBeside(request)) bytes += Buffer.byteLength(text);
  return tokens + Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Many models' vectors have this size, if the caller asks for none. */
const DIMENSIONS = 1_536;

/** For the token windows, where vectors count by their size; undefined: the estimate. */
function countedTokensOf({ task, messages }: ChatRequest, promptTokens: number, counted?: number): number | undefined {
  if (task?.kind !== 'embedding') return counted;
  const vectors = vectorTokens(messages.length * bytesOfVector(task.dimensions ?? DIMENSIONS));
  return Math.max(counted ?? promptTokens, vectors);
}

/** A chat format adds the first to each message; the second is a usual context instruction. */
const MESSAGE_TOKENS = 5;
const INSTRUCTION_TOKENS = 100;

/** The worker's count of a prompt without history may exceed the estimate by this at most. */
export const promptTokensAbove = ({ messages }: ChatRequest) => messages.length * MESSAGE_TOKENS + INSTRUCTION_TOKENS;

/** Copies the tenant's present settings for the worker. */
function toEnvelope(call: AdmissionCall, { tier, rates }: AdmissionTerms): Omit<RequestEnvelope, 'acceptedAt'> {
  const { requestId, principal, endpoint, stream, request, retentionMs, answerStorage, idempotency, traceparent } =
    call;
  const { tenantId, keyId, mode, subject, grade, moderation } = principal;
  const named = idempotency === undefined ? {} : { idempotency };
  return {
    requestId,
    tenantId,
    keyId,
    mode,
    endpoint,
    tier,
    stream,
    retentionMs,
    ...(answerStorage === undefined ? named : { rates, kept: { ...answerStorage, ...named } }),
    tenant: {
      ...(subject === undefined ? {} : { subject }),
      ...(grade === undefined ? {} : { grade }),
      ...(moderation === undefined ? {} : { moderation }),
    },
    request,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

async function loadBalance({ accounts, accountStore }: AdmissionDeps, { tenantId, shard }: Principal): Promise<void> {
  try {
    const balance = await accounts.read(tenantId);
    if (balance === undefined) throw new Error(`Tenant ${tenantId} has no account`);
    await accountStore.publishBalance(shard, tenantId, balance);
  } catch (cause) {
    throw new ServiceError('model_unavailable', 'The account cannot be read at the moment; try again shortly.', {
      cause,
      retryAfterSeconds: 1,
    });
  }
}

function termsOf(deps: AdmissionDeps, call: AdmissionCall, tier: Tier, bytes: number): AdmissionTerms {
  const { routing, pseudonyms } = deps;
  const { principal, endpoint, request, rates } = call;
  const { entityId, maxTokens, metadataJson } = request;
  const isFree = tier === 'moderation' || undefined;
  const promptTokens = isFree ? 0 : estimatePromptTokens(request);
  return {
    tier,
    name: nameOf({ tier, request }),
    isFree,
    queue: queueOf(endpoint),
    rates: rates ?? routing.current().tiers[tier]?.rates ?? DEFAULT_RATES[tier],
    promptTokens,
    promptMostTokens: promptTokens + (isFree ? 0 : promptTokensAbove(request)),
    maxTokens,
    countedTokens: countedTokensOf(request, promptTokens, call.countedTokens),
    largeBytes: bytes > LARGE_BYTES ? bytes : undefined,
    metadataJson,
    entityHash: entityId === undefined ? undefined : pseudonyms.of(principal.tenantId, entityId),
  };
}

/**
 * Limits, credits, budget and place in the queue take one atomic step. `admitted` holds credits. `joined`: an earlier
 * call with the same Idempotency-Key made the request. Throws `model_unavailable` if a store does not answer.
 */
export function createAdmission(deps: AdmissionDeps): (call: AdmissionCall) => Promise<AdmissionOutcome> {
  const { store, routing, isFull, voidLater, clock, log } = deps;

  async function tryOnce(call: AdmissionCall, terms: AdmissionTerms): Promise<Admission> {
    const { requestId, principal } = call;
    try {
      return await store.admit({ ...call, ...terms }, clock.now());
    } catch (cause) {
      // An admission whose reply is lost is voided in the background. A full Redis refuses the whole script, but the
      // call may repeat one that succeeded, with a lost reply.
      const isRefused = isOutOfMemory(cause);
      voidLater(requestId, principal, isRefused);
      if (isRefused) throw noRoom(cause);
      log.warn('An admission got no answer from Redis.', { requestId, error: cause });
      throw admissionUnanswered(cause);
    }
  }

  return async (asked) => {
    const bytes = asked.bytes ?? bytesOf(asked.request);
    if (isFull(bytes > LARGE_BYTES)) throw noRoom();
    const table = routing.current();
    const tier = asked.tier ?? tierOf(table, asked.request, asked.principal.defaultModel);
    const request = fitRequest(table, tier, asked.request);
    const call = request === asked.request ? asked : { ...asked, request };
    const terms = termsOf(deps, call, tier, bytes);
    const envelope = toEnvelope(call, terms);
    const body = call.isEnqueuedAtOnce && bytes <= BODY_BYTES_MAX ? JSON.stringify(envelope) : undefined;
    const isQueued = body !== undefined && Buffer.byteLength(body) <= BODY_BYTES_MAX;
    if (isQueued) terms.body = body;
    let admission = await tryOnce(call, terms);
    if (admission.verdict === 'balance_missing') {
      await loadBalance(deps, call.principal);
      admission = await tryOnce(call, terms);
    }
    const { verdict, joined } = admission;
    if (verdict === 'balance_missing') throw new Error('The ledger balance is missing although it was just published');
    if (verdict === 'joined')
      return { kind: 'joined', figures: admission, ...(joined ?? { requestId: '', fingerprint: '' }) };
    if (verdict !== 'admitted') return { kind: 'refused', figures: admission, verdict };
    // Of the first acceptance, as record and body say: the call may have been repeated.
    const acceptedAt = Math.floor(timeOfSeq(admission.seq));
    return { kind: 'admitted', figures: admission, envelope: { ...envelope, acceptedAt }, isQueued };
  };
}
