import type { Response } from 'express';

import { CHAT_LIMITS } from '../../shared/contracts/chat-request.ts';
import type { Tier } from '../../shared/contracts/chat-request.ts';
import { LOST } from '../../shared/contracts/events.ts';
import { nameOf } from '../../shared/contracts/jobs.ts';
import type { ChatRoute, RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { OnEarlyEnd } from '../../shared/contracts/settlement.ts';
import { routesOf, servable, targetsOf, tierOf, unreadFields } from '../../shared/domain/routing.ts';
import { bytesOf } from '../../shared/contracts/parse.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { RoutingCache } from '../../shared/mongo/routing/routing-cache.ts';
import { inTime } from '../../shared/redis/time-limits.ts';
import type { AdmissionCall, AdmissionOutcome, createAdmission } from '../../shared/requests/admission.ts';
import type { Enqueuer } from '../../shared/requests/enqueue.ts';
import type { BatchQueue } from '../../shared/requests/queue-store.ts';
import { ERASED_FINGERPRINT } from '../../shared/requests/record-store.ts';
import type { RecordStore, RequestRecord } from '../../shared/requests/record-store.ts';
import { toRefusal } from '../../shared/requests/refusals.ts';
import { claimCount, contextOf, principalOf } from '../http/request-context.ts';
import { setKeyHeaders } from '../http/count-requests.ts';
import type { FollowMove } from '../http/follow-move.ts';
import { attemptOf, comparable, idempotencyOf, keepsNothing, retentionOf } from '../http/request-terms.ts';
import type { RetentionSettings } from '../http/request-terms.ts';
import type { RelayHub } from '../relay/hub.ts';
import { answerHead } from '../relay/sse.ts';
import type { AnswerHead } from '../relay/sse.ts';
import type { ParsedChatBody } from './chat-body.ts';
import type { IntentStore, RestoreFromMongo } from './durable-requests.ts';

export function noLongerKept(): ServiceError {
  return new ServiceError('gone', 'The answer under this Idempotency-Key is no longer kept; send a new key.');
}

/** docs/spec.md#chat-request. */
const IGNORED_FIELDS_BYTES_MAX = 512;

/** The value of `X-Ignored-Fields`: the names, percent-encoded; names that do not fit are left out. */
export function ignoredFieldsHeader(names: readonly string[]): string {
  let value = '';
  for (const name of names) {
    // A name may be as long as a body, and encoding never makes it shorter.
    if (name.length > IGNORED_FIELDS_BYTES_MAX) continue;
    // A lone surrogate has no UTF-8 form, so it becomes the replacement character.
    const next = (value === '' ? '' : `${value}, `) + encodeURIComponent(name.toWellFormed());
    if (next.length <= IGNORED_FIELDS_BYTES_MAX) value = next;
  }
  return value;
}

export interface AdmissionEvents {
  'admission.decided': [verdict: string];
}

export interface AcceptDeps {
  routing: RoutingCache;
  admit: ReturnType<typeof createAdmission>;
  enqueuer: Enqueuer;
  hub: RelayHub;
  records: RecordStore;
  restoreFromMongo: RestoreFromMongo;
  intentStore: IntentStore;
  batchQueue: BatchQueue;
  retention: RetentionSettings;
  follow: FollowMove;
  onEarlyEnd: OnEarlyEnd;
  events: Emitter<AdmissionEvents>;
}

/** A call as its route knows it, apart from the body. */
export interface AcceptRoute {
  endpoint: ChatRoute;
  stream: boolean;
  /** The caller does not wait for the answer (`Prefer: respond-async`). */
  async?: boolean;
  idempotencyKey?: string | undefined;
  /** The number of this try, where the client says it; an `Idempotency-Key` wins. */
  tries?: number | undefined;
}

export interface Accepted<R> {
  head: AnswerHead;
  relay: R;
  /** An earlier call with the same Idempotency-Key, or try of the same call, made the request. */
  replayed: boolean;
}

export interface Relay {
  close(): void;
  /** Closes the relay of a request that was not admitted, without notifying Redis. */
  abandon(): void;
}

/** `existing`: an earlier call made the request, so its stream may have begun and is read from the start. */
export type OpenRelay<R> = (shard: number, requestId: string, existing: boolean) => R;

function headOf(envelope: RequestEnvelope): AnswerHead {
  const { metadataJson } = envelope.request;
  return answerHead({ ...envelope, name: nameOf(envelope), metadataJson });
}

/** The longest wait for the subscription to a shard's channel; only the first request of a shard has to wait. */
const SUBSCRIBE_MS = 1_000;

interface Call<R> {
  res: Response;
  route: AcceptRoute;
  body: ParsedChatBody;
  tier: Tier;
  openRelay: OpenRelay<R>;
  /** The request of an earlier call or try that was to be joined, but was not found. */
  notFound: string | undefined;
}

interface Prepared {
  asked: AdmissionCall;
  callerMayReturn: boolean;
  /** MongoDB keeps the request until it has ended. */
  hasIntent: boolean;
  /** The size of a large intent, which counts against what the tenant may write in this minute; else 0. */
  pacedBytes: number;
}

/** A call that admission has decided on, with the relay that was opened for it. */
interface Decided<R> extends Prepared {
  call: Call<R>;
  relay: R;
}

/** Undefined: try again, because the tenant has moved (the call's context has its new shard), or see `joinEarlier`. */
type Answer<R> = Promise<Accepted<R> | undefined>;

type Handlers = {
  [Kind in AdmissionOutcome['kind']]: <R extends Relay>(
    deps: AcceptDeps,
    decided: Decided<R>,
    outcome: AdmissionOutcome<Kind>,
  ) => Answer<R>;
};

/** Smaller ones are bounded by the requests per minute. */
const PACED_BYTES = 256 * 1024;

const TOO_LARGE_TO_KEEP =
  'A request of more than 15 MiB cannot be kept; send it without `Idempotency-Key` and `Prefer: respond-async`, or make it smaller.';

async function prepare(
  { hub, retention }: AcceptDeps,
  { res, route, body, tier, notFound }: Call<unknown>,
): Promise<Prepared> {
  const { endpoint, stream, async = false, idempotencyKey, tries } = route;
  const { requestId, traceparent } = contextOf(res);
  const principal = principalOf(res);
  const idempotency =
    idempotencyKey === undefined
      ? undefined
      : await idempotencyOf(principal, 'chat', idempotencyKey, comparable(body.request));
  const attempt =
    tries === undefined || idempotencyKey !== undefined
      ? undefined
      : // A request that has gone meanwhile is not looked for again.
        { ...(await attemptOf(principal, endpoint, body.request)), isRetry: tries > 0 && notFound === undefined };
  const callerMayReturn = async || idempotency !== undefined;
  const { retentionMs, answerStorage, hasIntent } = retentionOf(principal, callerMayReturn, retention);
  const bytes = bytesOf(body.request);
  if (hasIntent && bytes > CHAT_LIMITS.keptBytesMax) throw new ServiceError('invalid_request', TOO_LARGE_TO_KEEP);
  const asked: AdmissionCall = {
    requestId,
    principal,
    endpoint,
    tier,
    stream,
    request: body.request,
    bytes,
    channel: async ? '' : hub.channelOf(principal.shard),
    idempotency,
    attempt,
    onDisconnect: callerMayReturn ? 'finish' : principal.onDisconnect,
    answerStorage,
    isEnqueuedAtOnce: !async,
    retentionMs,
    traceparent,
  };
  return { asked, callerMayReturn, hasIntent, pacedBytes: hasIntent && bytes > PACED_BYTES ? bytes : 0 };
}

/**
 * Stores the intent of an admitted request, if it has one, and enqueues the request. An asynchronous caller gets 202 only
 * once the request is stored; for other callers it is stored in the background.
 */
async function storeAndEnqueue(
  { enqueuer, intentStore, batchQueue }: AcceptDeps,
  { asked: { principal }, hasIntent, pacedBytes, call }: Decided<Relay>,
  { envelope, isQueued }: AdmissionOutcome<'admitted'>,
): Promise<void> {
  const { shard, tenantId } = principal;
  // An admitted request goes on, also while Redis cannot count it.
  if (pacedBytes > 0) void batchQueue.takeWritten(shard, tenantId, pacedBytes).catch(() => undefined);
  if (hasIntent && call.route.async === true) {
    await intentStore.storeBeforeAnswer(shard, envelope).catch((error: unknown) => {
      // The job does not exist, so no worker has begun.
      enqueuer.voidLater(envelope.requestId, principal, false, envelope);
      throw error;
    });
  } else if (hasIntent) intentStore.storeInBackground(shard, envelope);
  if (!isQueued) await enqueuer.enqueue(envelope, principal);
}

/** Arranges what happens once the readers of an accepted request are gone, or Redis has lost it. */
function watchReaders(
  { hub, enqueuer, onEarlyEnd }: AcceptDeps,
  { asked: { requestId, principal, answerStorage }, callerMayReturn }: Prepared,
  { tenantId, keyId, mode, endpoint, tier, acceptedAt }: RequestEnvelope,
): void {
  if (keepsNothing(principal)) hub.deleteWhenRead(requestId);
  // This answer cannot be asked for later, so a worker must not put the request back and charge for it.
  if (!callerMayReturn && answerStorage === undefined) {
    hub.onLost(requestId, () => {
      enqueuer.voidLater(requestId, principal);
      // The envelope has the body, which would be held until the answer has ended.
      const facts = { requestId, tenantId, keyId, mode, endpoint, tier, acceptedAt };
      onEarlyEnd(facts, { code: LOST.error?.code, reason: 'lost by Redis', isGuess: true });
    });
  }
}

async function begin<R extends Relay>(
  deps: AcceptDeps,
  decided: Decided<R>,
  outcome: AdmissionOutcome<'admitted'>,
): Answer<R> {
  const { hub, records } = deps;
  const { asked, call, relay } = decided;
  const { shard } = asked.principal;
  contextOf(call.res).isAccepted = true;
  // The client may have left before the request existed, too early to detach it.
  if (call.res.closed && call.route.async !== true)
    await records.detach(shard, asked.requestId, hub.channelOf(shard)).catch(() => undefined);
  watchReaders(deps, decided, outcome.envelope);
  await storeAndEnqueue(deps, decided, outcome).catch((error: unknown) => {
    // The intent stays: another call may have joined, and recovery drops it where Redis has taken the request back.
    relay.close();
    throw error;
  });
  return { head: headOf(outcome.envelope), relay, replayed: false };
}

/**
 * Finds the request that an earlier call with this Idempotency-Key, or an earlier try of this call, made. Throws
 * `idempotency_mismatch` for a different body, and `gone` if the answer under the key is no longer kept. Undefined: Redis no
 * longer knows the request, or what a try would need of it.
 */
async function findEarlier(
  { hub, records, restoreFromMongo, intentStore }: AcceptDeps,
  { asked: { principal, idempotency, attempt }, call: { route } }: Decided<Relay>,
  { requestId, fingerprint }: AdmissionOutcome<'joined'>,
): Promise<RequestRecord | undefined> {
  if (fingerprint === ERASED_FINGERPRINT) throw noLongerKept();
  if (fingerprint !== (idempotency ?? attempt)?.fingerprint) {
    throw new ServiceError(
      'idempotency_mismatch',
      'This Idempotency-Key was used with another body; send a new key with a new request.',
    );
  }
  const attach = () => records.attach(principal, requestId, hub.channelOf(principal.shard));
  let record = await attach();
  if (record === undefined && (await restoreFromMongo.byId(principal, requestId))) record = await attach();
  if (record === undefined) return undefined;
  if (record.isGone) {
    if (route.idempotencyKey === undefined) return undefined;
    throw noLongerKept();
  }
  // The earlier call may still be refused.
  if (route.async === true && record.state !== 'done')
    await intentStore.waitUntilStored(principal, record.requestId, async () => (await attach())?.state === 'done');
  return record;
}

/** Undefined: the request that admission named has been voided meanwhile, and its key with it; try again. */
async function joinEarlier<R extends Relay>(
  deps: AcceptDeps,
  decided: Decided<R>,
  outcome: AdmissionOutcome<'joined'>,
): Answer<R> {
  const { asked, call, relay: unused } = decided;
  const { principal } = asked;
  unused.abandon();
  const record = await findEarlier(deps, decided, outcome);
  if (record === undefined) {
    // The key names this request a second time, so it was not voided: it has ended, and its answer is gone.
    if (call.notFound === outcome.requestId) throw noLongerKept();
    call.notFound = outcome.requestId;
    return undefined;
  }
  contextOf(call.res).isAccepted = true;
  const relay = call.openRelay(principal.shard, record.requestId, true);
  if (keepsNothing(principal)) deps.hub.deleteWhenRead(record.requestId);
  return { head: answerHead(record), relay, replayed: true };
}

/** Throws the refusal, unless the tenant has moved. */
function refuse<R extends Relay>(
  { follow }: AcceptDeps,
  { asked: { principal, endpoint }, call, relay }: Decided<R>,
  { figures, verdict }: AdmissionOutcome<'refused'>,
): Answer<R> {
  relay.abandon();
  if (follow(call.res, figures) !== undefined) return Promise.resolve(undefined);
  throw toRefusal({ ...figures, verdict }, principal, endpoint);
}

const HANDLERS: Handlers = { admitted: begin, joined: joinEarlier, refused: refuse };

function handle<R extends Relay, Kind extends AdmissionOutcome['kind']>(
  deps: AcceptDeps,
  decided: Decided<R>,
  outcome: AdmissionOutcome<Kind>,
): Answer<R> {
  const handler: Handlers[Kind] = HANDLERS[outcome.kind];
  return handler(deps, decided, outcome);
}

/** Asks admission on the shard where the tenant is, with the relay open. */
async function acceptOnShard<R extends Relay>(deps: AcceptDeps, call: Call<R>): Answer<R> {
  const { admit, hub, restoreFromMongo, batchQueue, events } = deps;
  const prepared = await prepare(deps, call);
  const { pacedBytes } = prepared;
  const { requestId, principal, idempotency } = prepared.asked;
  const { shard } = principal;
  // A 429 takes nothing; from here on admit.lua counts the request.
  claimCount(call.res);
  if (pacedBytes > 0) await batchQueue.assertMayWrite(principal);
  if (!hub.hasShard(shard)) await inTime(hub.ensureShard(shard), SUBSCRIBE_MS);
  if (idempotency !== undefined) await restoreFromMongo.byName(principal, idempotency.name);
  // A worker may begin before the result of the admission arrives.
  const relay = call.openRelay(shard, requestId, false);
  const outcome = await admit(prepared.asked).catch((error: unknown) => {
    relay.abandon();
    throw error;
  });
  setKeyHeaders(call.res, principal, outcome.figures);
  events.emit('admission.decided', outcome.figures.verdict);
  return handle(deps, { ...prepared, call, relay }, outcome);
}

/** Fields that no target of the tier gets. Throws `invalid_request` if none can serve it, before a worker finds out. */
function unservedFields({ routing }: AcceptDeps, tier: Tier, { request }: ParsedChatBody): string[] {
  if (request.passed === undefined) return [];
  const table = routing.current();
  const routes = routesOf(table, targetsOf(table, tier, request.model));
  return unreadFields(servable(routes, request.model ?? tier, request), request);
}

export type Accept = ReturnType<typeof createAccept>;

/**
 * Brings a valid chat body into the queue, for every chat route: opens the relay, admits the request, and does what the
 * verdict asks for. The relay opens before the job exists, so that it misses no event. A call that repeats an
 * Idempotency-Key joins the first call's request, running or ended, complete or streamed; so does a try of a call whose
 * client lost an earlier one.
 */
export function createAccept(deps: AcceptDeps) {
  return async <R extends Relay>(
    res: Response,
    route: AcceptRoute,
    body: ParsedChatBody,
    openRelay: OpenRelay<R>,
  ): Promise<Accepted<R>> => {
    const tier = tierOf(deps.routing.current(), body.request, principalOf(res).defaultModel);
    const ignored = ignoredFieldsHeader([...body.ignoredFields, ...unservedFields(deps, tier, body)]);
    if (ignored !== '') res.setHeader('X-Ignored-Fields', ignored);
    const call = { res, route, body, tier, openRelay, notFound: undefined };
    try {
      for (;;) {
        const accepted = await acceptOnShard(deps, call);
        if (accepted !== undefined) return accepted;
      }
    } finally {
      contextOf(res).letBodyGo?.();
    }
  };
}
