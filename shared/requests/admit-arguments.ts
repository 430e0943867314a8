import { BATCH_LIMITS } from '../contracts/batches.ts';
import type { Tier } from '../contracts/chat-request.ts';
import type { ChatRoute, IdempotencyName, QueueName } from '../contracts/jobs.ts';
import { flagOf } from '../domain/principal.ts';
import type { Principal } from '../domain/principal.ts';
import { dayOf, holdRates, monthOf } from '../domain/pricing.ts';
import type { Rates } from '../domain/routing.ts';
import { storedChatJob } from '../queue/bullmq-layout.ts';
import type { Keyspace, ShardKeys } from '../redis/keyspace.ts';
import type { Script } from '../redis/scripts.ts';
import { bodyLifeMs } from './body-store.ts';
import { ratesText } from './delivery.ts';

/** Worked out by admission itself: tier, possible cost, place to wait. */
export interface AdmissionTerms {
  tier: Tier;
  queue: QueueName;
  rates: Rates;
  promptTokens: number;
  /** The worker may count this at most for the prompt. Absent: `promptTokens`. */
  promptMostTokens?: number;
  maxTokens: number;
  /** In the token windows until the request has ended. Absent: the estimate. */
  countedTokens?: number | undefined;
  /** Of a large body; a limit bounds their sum over the tenant's open requests. */
  largeBytes?: number | undefined;
  metadataJson: string | undefined;
  /** The published name of the request. Undefined: the tier's own. */
  name?: string | undefined;
  /** No bound of tokens counts the request. */
  isFree?: true | undefined;
  /** A pseudonym, by which a deletion finds the request. */
  entityHash: string | undefined;
  /** The envelope as JSON, without `acceptedAt`. Absent: `enqueue` queues the request later. */
  body?: string;
}

export interface AdmissionRequest extends AdmissionTerms {
  requestId: string;
  principal: Principal;
  endpoint: ChatRoute;
  /** Of the ingress that waits for the answer; empty: none. */
  channel: string;
  /** The request ends or goes on without readers. */
  onDisconnect: 'cancel' | 'finish';
  /** `name` hashes tenant, mode, route family and the caller's key; `fingerprint` hashes the body. */
  idempotency: IdempotencyName | undefined;
  /** Only if the client says so. `isRetry` joins an earlier try's request that nobody reads. */
  attempt?: (IdempotencyName & { isRetry: boolean }) | undefined;
  /** Redis keeps the end this long; milliseconds. Absent: the service's own time. */
  retentionMs?: number;
  /** The first acceptance of a request that is admitted again: its charge counts to that month's budget. */
  acceptedAt?: number;
  /** For a line. Unless `leaderId` leads the shard's batches and the batch is open, the verdict is `void`. */
  batch?: { batchId: string; leaderId: string };
}

/** Held by the process that sends the lines of a shard's batches. */
export const BATCH_LEASE = 'batches';

interface AdmitSettings {
  queueLimit: number;
  requestTimeoutMs: number;
  retentionMs: number;
  recordLifeMs: number;
}

/** For a request that an operator runs again (replay-request.ts): limits on requests have counted it. */
export const REPLAY_RPM = Number.MAX_SAFE_INTEGER;

/** One tenant may fill this part of a queue (docs/spec.md#tenant-ceilings). */
const TENANT_SHARE = 0.5;

/** An endpoint without a limit of its own has the key's. */
function throttleOf({ endpoint, principal: { limits } }: AdmissionRequest): number {
  if (endpoint === 'chat') return limits.chatRpm;
  return endpoint === 'chat.stream' ? limits.streamRpm : limits.rpm;
}

/** In the order of the script's KEYS. */
function keysOf(keys: ShardKeys, { requestId, principal, queue }: AdmissionRequest): string[] {
  const { keyId, tenantId } = principal;
  return [
    keys.record(requestId),
    keys.keyRpm(keyId),
    keys.tokenWindow(keyId),
    keys.account(tenantId),
    keys.blocked(flagOf(principal)),
    keys.blocked(tenantId),
    keys.inflight,
    keys.wait(queue),
    keys.meanCompletion(keyId),
    keys.open(tenantId),
    keys.prioritized(queue),
    keys.job(queue, requestId),
    keys.marker(queue),
    keys.queueMeta(queue),
    keys.body(requestId),
  ];
}

/** Only some requests have these, by the names under which `at` has their places among the KEYS. */
function optionalKeysOf(keys: ShardKeys, request: AdmissionRequest, acceptedAt: number): [name: string, key: string][] {
  const { principal, endpoint, queue, idempotency, attempt, entityHash, batch } = request;
  const { keyId, tenantId, limits, mode } = principal;
  const optional: Record<string, string | undefined> = {
    // A throttle no tighter than the key's rpm never refuses, so it is not counted.
    throttle: throttleOf(request) < limits.rpm && queue !== 'batch' ? keys.throttle(endpoint, keyId) : undefined,
    day: limits.dailyRequests > 0 ? keys.daily(keyId) : undefined,
    allowance: mode === 'live' ? undefined : keys.testAllowance(tenantId, dayOf(acceptedAt)),
    named: idempotency && keys.idempotency(idempotency.name),
    ...(attempt && { named: keys.retries(attempt.name) }),
    entity: entityHash === undefined ? undefined : keys.entityRequests(tenantId, entityHash),
    lease: batch && keys.lease(BATCH_LEASE),
    closed: batch && keys.closedBatch(batch.batchId),
  };
  return Object.entries(optional).filter((entry): entry is [string, string] => entry[1] !== undefined);
}

/**
 * The record needs the retention if it is not the service's, or if MongoDB may have the body (an intent), which every
 * end has to know (answers.lua).
 */
function hasOwnRetention(request: AdmissionRequest, settings: AdmitSettings): boolean {
  const { retentionMs, idempotency, channel, queue } = request;
  const mayHaveIntent = queue !== 'batch' && (idempotency !== undefined || channel === '');
  return retentionMs !== undefined && (mayHaveIntent || retentionMs !== settings.retentionMs);
}

/** Per minute, except for the daily one and requests in flight. */
function limitsOf(request: AdmissionRequest) {
  const { queue } = request;
  const { limits, ceilings } = request.principal;
  const tpmOf = (limit: number) => (queue === 'batch' ? Math.max(1, Math.floor(limit * BATCH_LIMITS.tpmShare)) : limit);
  return {
    rpmLimit: limits.rpm,
    throttleLimit: throttleOf(request),
    tpmLimit: tpmOf(limits.tpm),
    dailyLimit: limits.dailyRequests,
    tenantRpm: ceilings.rpm ?? undefined,
    tenantTpm: ceilings.tpm === null ? undefined : tpmOf(ceilings.tpm),
    openLimit: ceilings.inFlight ?? undefined,
  };
}

/** admit.lua reads values by these names; undefined: the value does not apply. */
function namedValues(request: AdmissionRequest, acceptedAt: number, settings: AdmitSettings) {
  const { principal, queue, rates, promptTokens, maxTokens } = request;
  const isLive = principal.mode === 'live';
  const promptMost = request.promptMostTokens ?? promptTokens;
  const held = holdRates(rates);
  const mostMicro = Math.round(promptMost * held.promptMicro + maxTokens * held.completionMicro);
  return {
    queue,
    tier: request.tier,
    name: request.name,
    isFree: request.isFree,
    channel: request.channel,
    onDisconnect: request.onDisconnect,
    tenantId: principal.tenantId,
    keyId: principal.keyId,
    weight: principal.weight,
    ...limitsOf(request),
    queueLimit: settings.queueLimit,
    tenantShare: Math.max(1, Math.floor(settings.queueLimit * TENANT_SHARE)),
    isBilled: isLive,
    budget: isLive ? (principal.monthlyTokenBudget ?? undefined) : principal.testDailyTokens,
    month: monthOf(request.acceptedAt ?? acceptedAt),
    promptTokens,
    completionTokens: maxTokens,
    countedTokens: request.countedTokens,
    largeBytes: request.largeBytes,
    promptRate: held.promptMicro,
    completionRate: held.completionMicro,
    /** Adds the most tokens and micro-credits that the worker may count. */
    rates: `${ratesText(rates)} ${promptMost + maxTokens} ${mostMicro}`,
    fingerprint: (request.idempotency ?? request.attempt)?.fingerprint,
    attempt: request.attempt && (request.attempt.isRetry ? 'again' : 'first'),
    isReplay: principal.limits.rpm === REPLAY_RPM || undefined,
    leader: request.batch?.leaderId,
    deadlineMs: settings.requestTimeoutMs,
    recordMs: settings.recordLifeMs,
    bodyMs: bodyLifeMs(settings.requestTimeoutMs),
    retentionMs: hasOwnRetention(request, settings) ? request.retentionMs : undefined,
  };
}

/**
 * `acceptedAt` is by the shard's clock, like the month and the day of a charge: an ingress with another clock must not
 * look at another month's budget or another day's allowance.
 */
export function toAdmitCall(
  keyspace: Keyspace,
  request: AdmissionRequest,
  acceptedAt: number,
  settings: AdmitSettings,
): Parameters<Script> {
  const { requestId, principal, queue, body, metadataJson } = request;
  const shardKeys = keyspace.shard(principal.shard);
  const keys = keysOf(shardKeys, request);
  const optional = optionalKeysOf(shardKeys, request, acceptedAt);
  const at = Object.fromEntries(optional.map(([name], index) => [name, keys.length + index + 1]));
  const job = storedChatJob(queue, requestId, { tenantId: principal.tenantId });
  return [
    [...keys, ...optional.map(([, key]) => key)],
    [
      requestId,
      JSON.stringify({ ...namedValues(request, acceptedAt, settings), jobName: job.name, at }),
      body?.slice(0, -1) ?? '',
      job.data,
      job.opts,
      metadataJson ?? '',
    ],
  ];
}
