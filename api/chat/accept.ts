import type { Response } from 'express';

import type { ChatRequest } from '../../shared/contracts/chat-request.ts';
import type { ChatRoute, RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import { inTime } from '../../shared/redis/time-limits.ts';
import type { AdmissionCall, AdmissionOutcome, createAdmission } from '../../shared/requests/admission.ts';
import type { Enqueuer } from '../../shared/requests/enqueue.ts';
import { FORGOTTEN } from '../../shared/requests/record-store.ts';
import type { RecordStore, RequestRecord } from '../../shared/requests/record-store.ts';
import { toRefusal } from '../../shared/requests/refusals.ts';
import { claimCount, contextOf, principalOf } from '../http/request-context.ts';
import { setKeyHeaders } from '../limits/count-requests.ts';
import type { FollowMove } from '../limits/follow-move.ts';
import {
  attemptOf,
  comparable,
  idempotencyOf,
  isOfRequest,
  keepsNothing,
  retentionOf,
} from '../limits/request-terms.ts';
import type { RetentionSettings } from '../limits/request-terms.ts';
import type { RelayHub } from '../relay/hub.ts';
import { answerHead } from '../relay/sse.ts';
import type { AnswerHead } from '../relay/sse.ts';
import type { ParsedChatBody } from './chat-body.ts';
import type { IntentKeeper, Recall } from './durable-requests.ts';

export interface JoinDeps {
  hub: Pick<RelayHub, 'channelOf'>;
  records: Pick<RecordStore, 'attach'>;
  recall: Pick<Recall, 'byId'>;
  intentKeeper: Pick<IntentKeeper, 'waitUntilStored'>;
}

export function noLongerKept(): ServiceError {
  return new ServiceError('gone', 'The answer under this Idempotency-Key is no longer kept; send a new key.');
}

/**
 * Joins a call to the request that an earlier call with its Idempotency-Key, or an earlier try of it, made. Throws
 * `idempotency_mismatch` for a different body, and `gone` if the answer under the key is no longer kept. Undefined: Redis no
 * longer knows the request, or what a try would need of it.
 */
function createJoin({ hub, records, recall, intentKeeper }: JoinDeps) {
  return async (
    { requestId, fingerprint }: AdmissionOutcome & { kind: 'joined' },
    request: ChatRequest,
    principal: Principal,
    { idempotencyKey, async = false }: { idempotencyKey?: string | undefined; async?: boolean },
  ): Promise<RequestRecord | undefined> => {
    if (fingerprint === FORGOTTEN) throw noLongerKept();
    if (!isOfRequest(fingerprint, request)) {
      throw new ServiceError(
        'idempotency_mismatch',
        'This Idempotency-Key was used with another body; send a new key with a new request.',
      );
    }
    const attach = () => records.attach(principal, requestId, hub.channelOf(principal.shard));
    let record = await attach();
    if (record === undefined && (await recall.byId(principal, requestId))) record = await attach();
    if (record === undefined) return undefined;
    if (record.isGone) {
      if (idempotencyKey === undefined) return undefined;
      throw noLongerKept();
    }
    // The earlier call may still be refused.
    if (async && record.state !== 'done')
      await intentKeeper.waitUntilStored(principal, record.requestId, async () => (await attach())?.state === 'done');
    return record;
  };
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
  admit: ReturnType<typeof createAdmission>;
  enqueuer: Pick<Enqueuer, 'enqueue' | 'takeBack'>;
  hub: RelayHub;
  records: Pick<RecordStore, 'attach' | 'detach'>;
  recall: Recall;
  intentKeeper: IntentKeeper;
  retention: RetentionSettings;
  follow: FollowMove;
  events: Emitter<AdmissionEvents>;
}

/** What a route knows of a call, apart from its body. */
export interface AcceptRoute {
  endpoint: ChatRoute;
  /** The caller reads the answer as it is generated. */
  stream: boolean;
  /** The caller does not wait for the answer (`Prefer: respond-async`). */
  async?: boolean;
  /** `Idempotency-Key` as it was sent. */
  idempotencyKey?: string | undefined;
  /** Which try of a call this is, where the client says so; an `Idempotency-Key` wins. */
  tries?: number | undefined;
}

export interface Accepted<R> {
  head: AnswerHead;
  relay: R;
  /** An earlier call with the same Idempotency-Key, or try of the same call, made the request. */
  replayed: boolean;
}

/** Brings the answer back to the caller. */
export interface Relay {
  close(): void;
  /** Closes the relay of a request that was not admitted, without notifying Redis. */
  abandon(): void;
}

/** `existing`: an earlier call made the request, so its stream may have begun and is read from the start. */
export type OpenRelay<R> = (shard: number, requestId: string, existing: boolean) => R;

function headOf({ requestId, acceptedAt, tier, request }: RequestEnvelope): AnswerHead {
  return answerHead({ requestId, acceptedAt, tier, metadataJson: request.metadataJson });
}

/** The longest wait for the subscription to a shard's channel; only the first request of a shard has to wait. */
const SUBSCRIBE_MS = 1_000;

/** A call on its way in. */
interface Call<R> {
  res: Response;
  route: AcceptRoute;
  body: ParsedChatBody;
  openRelay: OpenRelay<R>;
  /** The request of an earlier call or try that was to be joined, but was not found. */
  notFound: string | undefined;
}

/** What a call asks of admission, and what has to happen once it is admitted. */
interface Prepared {
  asked: AdmissionCall;
  /** The caller may ask for the answer later. */
  callerMayReturn: boolean;
  hasIntent: boolean;
}

/**
 * Whether and how MongoDB keeps the request until it has ended (see retention.ts): an asynchronous caller gets 202 only
 * once the request is stored; for other callers it is stored in the background.
 */
type Intent = 'none' | 'awaited' | 'background';

function intentOf(hasIntent: boolean, async: boolean): Intent {
  if (!hasIntent) return 'none';
  return async ? 'awaited' : 'background';
}

export type Accept = ReturnType<typeof createAccept>;

function prepare({ hub, retention }: AcceptDeps, { res, route, body, notFound }: Call<unknown>): Prepared {
  const { endpoint, stream, async = false, idempotencyKey, tries } = route;
  const { requestId, traceparent } = contextOf(res);
  const principal = principalOf(res);
  const idempotency =
    idempotencyKey === undefined
      ? undefined
      : idempotencyOf(principal, 'chat', idempotencyKey, comparable(body.request));
  const attempt =
    tries === undefined || idempotencyKey !== undefined
      ? undefined
      : // A request that has gone meanwhile is not looked for again.
        { ...attemptOf(principal, endpoint, body.request), isRetry: tries > 0 && notFound === undefined };
  const callerMayReturn = async || idempotency !== undefined;
  const { retentionMs, answerStorage, hasIntent } = retentionOf(principal, callerMayReturn, retention);
  const asked: AdmissionCall = {
    requestId,
    principal,
    endpoint,
    stream,
    request: body.request,
    channel: async ? '' : hub.channelOf(principal.shard),
    idempotency,
    attempt,
    onDisconnect: callerMayReturn ? 'finish' : principal.onDisconnect,
    answerStorage,
    isEnqueuedAtOnce: !async,
    retentionMs,
    traceparent,
  };
  return { asked, callerMayReturn, hasIntent };
}

/** Stores the intent of an admitted request, if it has one, and enqueues the request. */
async function storeAndEnqueue(
  { enqueuer, intentKeeper }: AcceptDeps,
  { envelope, isQueued }: AdmissionOutcome & { kind: 'admitted' },
  principal: Principal,
  relay: Relay,
  intent: Intent,
): Promise<void> {
  const { requestId } = envelope;
  try {
    if (intent === 'awaited') {
      await intentKeeper.storeBeforeAnswer(principal.shard, envelope).catch((error: unknown) => {
        // The job does not exist, so no worker has begun.
        enqueuer.takeBack(requestId, principal, false, envelope);
        throw error;
      });
    } else if (intent === 'background') intentKeeper.storeInBackground(principal.shard, envelope);
    if (!isQueued) await enqueuer.enqueue(envelope, principal);
  } catch (error) {
    // The intent stays: another call may have joined, and recovery drops it where Redis has taken the request back.
    relay.close();
    throw error;
  }
}

/** Arranges what happens once the readers of an accepted request are gone, or Redis has lost it. */
function watchReaders(
  { hub, enqueuer }: AcceptDeps,
  { asked: { requestId, principal, answerStorage }, callerMayReturn }: Prepared,
): void {
  if (keepsNothing(principal)) hub.wipeAtEnd(requestId);
  // This answer cannot be asked for later, so a worker must not put the request back and charge for it.
  if (!callerMayReturn && answerStorage === undefined) {
    hub.whenLost(requestId, () => {
      enqueuer.takeBack(requestId, principal);
    });
  }
}

/**
 * Brings a valid chat body into the queue, for every chat route: opens the relay, then admits the request. The relay
 * opens before the job exists, so that it misses no event. A call that repeats an Idempotency-Key joins the first
 * call's request, whether that is running or has ended, and whether its answer is complete or streamed. So does a try of
 * a call whose client lost an earlier one.
 */
export function createAccept(deps: AcceptDeps) {
  const { admit, hub, records, recall, follow, events } = deps;
  const joinRequest = createJoin(deps);

  /** Undefined: the request that admission named has been voided meanwhile, and its key with it; try again. */
  async function joinEarlier<R extends Relay>(
    call: Call<R>,
    joined: AdmissionOutcome & { kind: 'joined' },
    principal: Principal,
  ): Promise<Accepted<R> | undefined> {
    const { route, body, openRelay, notFound } = call;
    const record = await joinRequest(joined, body.request, principal, route);
    if (record === undefined) {
      // The key names this request a second time, so it was not voided: it has ended, and its answer is gone.
      if (notFound === joined.requestId) throw noLongerKept();
      call.notFound = joined.requestId;
      return undefined;
    }
    const relay = openRelay(principal.shard, record.requestId, true);
    if (keepsNothing(principal)) hub.wipeAtEnd(record.requestId);
    return { head: answerHead(record), relay, replayed: true };
  }

  /**
   * Undefined: try again, because the tenant has moved (the call's context has its new shard), or see `joinEarlier`.
   */
  async function acceptOnShard<R extends Relay>(call: Call<R>): Promise<Accepted<R> | undefined> {
    const { res, openRelay } = call;
    const { endpoint, async = false } = call.route;
    const prepared = prepare(deps, call);
    const { requestId, principal, idempotency } = prepared.asked;
    const { shard } = principal;
    if (!hub.hasShard(shard)) await inTime(hub.ensureShard(shard), SUBSCRIBE_MS);
    if (idempotency !== undefined) await recall.byName(principal, idempotency.name);
    // A worker may begin before the result of the admission arrives.
    const relay = openRelay(shard, requestId, false);
    const admitted = await admit(prepared.asked).catch((error: unknown) => {
      relay.abandon();
      throw error;
    });
    setKeyHeaders(res, principal, admitted.figures);
    events.emit('admission.decided', admitted.figures.verdict);
    if (admitted.kind !== 'admitted') relay.abandon();
    if (follow(res, admitted.figures) !== undefined) return undefined;
    if (admitted.kind === 'refused')
      throw toRefusal({ ...admitted.figures, verdict: admitted.verdict }, principal, endpoint);
    if (admitted.kind === 'joined') return joinEarlier(call, admitted, principal);
    // The client may have left before the request existed, too early to detach it.
    if (res.closed && !async) await records.detach(shard, requestId, hub.channelOf(shard)).catch(() => undefined);
    watchReaders(deps, prepared);
    await storeAndEnqueue(deps, admitted, principal, relay, intentOf(prepared.hasIntent, async));
    return { head: headOf(admitted.envelope), relay, replayed: false };
  }

  return async <R extends Relay>(
    res: Response,
    route: AcceptRoute,
    body: ParsedChatBody,
    openRelay: OpenRelay<R>,
  ): Promise<Accepted<R>> => {
    const ignored = ignoredFieldsHeader(body.ignoredFields);
    if (ignored !== '') res.setHeader('X-Ignored-Fields', ignored);
    // admit.lua counts the request.
    claimCount(res);
    const call = { res, route, body, openRelay, notFound: undefined };
    for (;;) {
      const accepted = await acceptOnShard(call);
      if (accepted !== undefined) return accepted;
    }
  };
}
