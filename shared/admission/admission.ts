import type { ChatRequest, Tier } from '../contracts/chat-request.ts';
import { queueOf } from '../contracts/jobs.ts';
import type { KeptAs, RequestEnvelope } from '../contracts/jobs.ts';
import type { Pseudonyms } from '../domain/compliance/pseudonyms.ts';
import type { Principal } from '../domain/keys/principal.ts';
import { BYTES_PER_TOKEN } from '../domain/pricing/pricing.ts';
import { DEFAULT_RATES } from '../domain/routing/routing.ts';
import { ServiceError } from '../errors/service-error.ts';
import type { Logger } from '../infra/logging/logger.ts';
import type { AccountRepository } from '../infra/mongo/accounts/account-repository.ts';
import type { RoutingCache } from '../infra/mongo/routing/routing-cache.ts';
import type { AccountStore } from '../infra/redis/accounts/account-store.ts';
import type {
  Admission,
  AdmissionRequest,
  AdmissionStore,
  AdmissionTerms,
} from '../infra/redis/requests/admission-store.ts';
import { isOutOfMemory } from '../infra/redis/memory-watch.ts';
import type { Clock } from '../lifecycle/clock.ts';
import type { Refusal } from './refusals.ts';

export interface AdmissionDeps {
  store: AdmissionStore;
  accounts: AccountRepository;
  accountStore: AccountStore;
  routing: RoutingCache;
  /** Whether Redis has no room for new requests. */
  isFull: () => boolean;
  /** `isRefused`: mostly there is nothing to take back. */
  takeBack: (requestId: string, principal: Principal, isRefused: boolean) => void;
  pseudonyms: Pick<Pseudonyms, 'of'>;
  clock: Clock;
  log: Logger;
}

/** One call from the route to the store, which takes its own values from it; admission adds the terms. */
export interface AdmissionCall extends Omit<AdmissionRequest, Exclude<keyof AdmissionTerms, 'countedTokens'>> {
  stream: boolean;
  request: ChatRequest;
  /** How long Redis keeps the answer after the end; milliseconds. */
  retentionMs: number;
  /** Undefined: it is kept in no other way. */
  kept: KeptAs | undefined;
  /** A worker may begin as soon as the request is admitted; else its caller puts it into line. */
  isEnqueuedAtOnce: boolean;
  /** See RequestEnvelope. */
  traceparent?: string | undefined;
}

/** The decision, with the figures for the rate-limit headers. */
export type AdmissionOutcome = { figures: Admission } &
  /** Unless `isQueued`, the envelope has to be put into line. */
  (
    | { kind: 'admitted'; envelope: RequestEnvelope; isQueued: boolean }
    | { kind: 'joined'; requestId: string; fingerprint: string }
    | { kind: 'refused'; verdict: Refusal }
  );

/** Larger bodies follow their admission: a flood of refusals need not carry them. */
const BODY_TOKENS_MAX = 16_384;

export function estimatePromptTokens(request: ChatRequest): number {
  let bytes = 0;
  for (const message of request.messages) bytes += Buffer.byteLength(message.content);
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** For what a chat format adds to each message, and for a context instruction of usual length. */
const MESSAGE_TOKENS = 5;
const INSTRUCTION_TOKENS = 100;

/** What the worker may count of a prompt without history at most. */
export const mostPromptTokens = (request: ChatRequest) =>
  estimatePromptTokens(request) + request.messages.length * MESSAGE_TOKENS + INSTRUCTION_TOKENS;

/** What the worker needs, with the tenant's settings of this moment. */
function toEnvelope(
  { requestId, principal, endpoint, stream, request, retentionMs, kept, idempotency, traceparent }: AdmissionCall,
  tier: Tier,
): Omit<RequestEnvelope, 'acceptedAt'> {
  const { tenantId, keyId, mode, subject, grade, moderation } = principal;
  return {
    requestId,
    tenantId,
    keyId,
    mode,
    endpoint,
    tier,
    stream,
    retentionMs,
    ...(kept === undefined ? {} : { kept: { ...kept, ...(idempotency === undefined ? {} : { idempotency }) } }),
    tenant: {
      ...(subject === undefined ? {} : { subject }),
      ...(grade === undefined ? {} : { grade }),
      ...(moderation === undefined ? {} : { moderation }),
    },
    request,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

/** Long enough for some requests to end; the refusal costs Redis nothing, so asking again does no harm. */
const FULL_RETRY_SECONDS = 2;

/** Redis has no room: the caller may come again when some requests have ended (docs/spec/contract.md section 8). */
function noRoom(cause?: unknown): ServiceError {
  return new ServiceError('model_unavailable', 'The service has no room for new requests; try again shortly.', {
    retryAfterSeconds: FULL_RETRY_SECONDS,
    ...(cause === undefined ? {} : { cause }),
  });
}

/**
 * Admits a request: limits, credits, budget and its place in line in one atomic step. Returns the envelope, from when on
 * the tenant's credits are held; the request that an earlier call with the same Idempotency-Key made; or the refusal. Throws `model_unavailable` where a store does not answer.
 */
export function createAdmission(deps: AdmissionDeps): (call: AdmissionCall) => Promise<AdmissionOutcome> {
  const { store, accounts, accountStore, routing, isFull, takeBack, pseudonyms, clock, log } = deps;

  async function loadBook({ tenantId, shard }: Principal): Promise<void> {
    try {
      const book = await accounts.read(tenantId);
      if (book === undefined) throw new Error(`Tenant ${tenantId} has no account`);
      await accountStore.publishBook(shard, tenantId, book);
    } catch (cause) {
      throw new ServiceError('model_unavailable', 'The account cannot be read at the moment; try again shortly.', {
        cause,
        retryAfterSeconds: 1,
      });
    }
  }

  function termsOf({ principal, endpoint, request }: AdmissionCall, tier: Tier): AdmissionTerms {
    const { entityId, maxTokens, metadataJson } = request;
    return {
      tier,
      queue: queueOf(endpoint),
      rates: routing.current().tiers[tier]?.rates ?? DEFAULT_RATES[tier],
      promptTokens: estimatePromptTokens(request),
      promptMostTokens: mostPromptTokens(request),
      maxTokens,
      metadataJson,
      entityHash: entityId === undefined ? undefined : pseudonyms.of(principal.tenantId, entityId),
    };
  }

  async function tryOnce(call: AdmissionCall, terms: AdmissionTerms): Promise<Admission> {
    const { requestId, principal } = call;
    try {
      return await store.admit({ ...call, ...terms }, clock.now());
    } catch (cause) {
      // The answer is lost, not necessarily the admission: it is taken back in the background. What a full Redis refuses it
      // refuses whole, but it may have been sent again: after the answer to an admission was lost.
      const isRefused = isOutOfMemory(cause);
      takeBack(requestId, principal, isRefused);
      if (isRefused) throw noRoom(cause);
      log.warn('An admission got no answer from Redis.', { requestId, error: cause });
      throw new ServiceError(
        'model_unavailable',
        'The service cannot take requests at the moment; try again shortly.',
        {
          cause,
          retryAfterSeconds: 1,
        },
      );
    }
  }

  return async (call) => {
    if (isFull()) throw noRoom();
    const tier = call.request.model ?? call.principal.defaultModel;
    const envelope = toEnvelope(call, tier);
    const terms = termsOf(call, tier);
    const isQueued = call.isEnqueuedAtOnce && terms.promptTokens <= BODY_TOKENS_MAX;
    if (isQueued) terms.body = JSON.stringify(envelope);
    let admission = await tryOnce(call, terms);
    if (admission.verdict === 'load') {
      await loadBook(call.principal);
      admission = await tryOnce(call, terms);
    }
    const { verdict, joined } = admission;
    if (verdict === 'load') throw new Error('The account stays unloaded although its book was just published');
    if (verdict === 'joined')
      return { kind: 'joined', figures: admission, ...(joined ?? { requestId: '', fingerprint: '' }) };
    if (verdict !== 'admitted') return { kind: 'refused', figures: admission, verdict };
    return { kind: 'admitted', figures: admission, envelope: { ...envelope, acceptedAt: admission.now }, isQueued };
  };
}
