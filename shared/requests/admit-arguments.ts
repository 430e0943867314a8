import { BATCH_LIMITS } from '../contracts/batches.ts';
import type { Tier } from '../contracts/chat-request.ts';
import type { ChatRoute, IdempotencyName, QueueName } from '../contracts/jobs.ts';
import { flagOf } from '../domain/principal.ts';
import type { Principal } from '../domain/principal.ts';
import { dayOf, monthOf } from '../domain/pricing.ts';
import type { Rates } from '../domain/routing.ts';
import { storedChatJob } from '../queue/bullmq-layout.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { textsOf } from '../redis/scripts.ts';
import type { Script } from '../redis/scripts.ts';
import { bodyLifeMs } from './body-store.ts';

/** What admission itself works out about a call: its tier, what it may cost, where it waits. */
export interface AdmissionTerms {
  tier: Tier;
  queue: QueueName;
  rates: Rates;
  promptTokens: number;
  /** The most that the worker may count for the prompt. Absent: `promptTokens`. */
  promptMostTokens?: number;
  maxTokens: number;
  /** How many tokens the request counts in the token windows until it has ended. Absent: its estimate. */
  countedTokens?: number | undefined;
  metadataJson: string | undefined;
  /** The pseudonym of the request's entity, under which a deletion finds the request. */
  entityHash: string | undefined;
  /** The envelope as JSON, without `acceptedAt`. Absent: `enqueue` puts the request into line later. */
  body?: string;
}

export interface AdmissionRequest extends AdmissionTerms {
  requestId: string;
  principal: Principal;
  endpoint: ChatRoute;
  /** Channel of the ingress that waits for the answer; empty: nobody waits. */
  channel: string;
  /** Whether the request continues when its last reader has gone. */
  onDisconnect: 'cancel' | 'finish';
  /** `name`: a hash over tenant, mode, route family and the caller's key; `fingerprint`: a hash over the body. */
  idempotency: IdempotencyName | undefined;
  /** Which try of a call this is, if its client says so: `retry` joins a request of an earlier one that nobody reads. */
  attempt?: (IdempotencyName & { isRetry: boolean }) | undefined;
  /** How long Redis keeps the end of the request; milliseconds. Absent: the service's own time. */
  retentionMs?: number;
  /** When the request was first accepted, if it is admitted again: its charge counts to the budget of that month. */
  acceptedAt?: number;
  /** The batch of a line. Unless `leaderId` leads the shard's batches and the batch is open, the verdict is `void`. */
  batch?: { batchId: string; leaderId: string };
}

/** The lease of the process that sends the lines of a shard's batches. */
export const BATCH_LEASE = 'batches';

/** Settings that all admissions of a process share. */
interface AdmitSettings {
  queueLimit: number;
  requestTimeoutMs: number;
  retentionMs: number;
  recordLifeMs: number;
}

/** The part of a queue's places that one tenant may fill (docs/spec.md#tenant-ceilings). */
const TENANT_SHARE = 0.5;

/** How admit.lua reads a number that is not given. */
const NONE = -1;

function throttleOf({ endpoint, principal: { limits } }: AdmissionRequest): number {
  return endpoint === 'chat' ? limits.chatRpm : limits.streamRpm;
}

/** Optional keys come last, in the order in which admit.lua takes them. */
function keysOf(keyspace: Keyspace, request: AdmissionRequest, acceptedAt: number): string[] {
  const { requestId, principal, endpoint, queue, idempotency, attempt, entityHash, batch } = request;
  const { shard, keyId, tenantId, limits, mode } = principal;
  const keys = keyspace.shard(shard);
  return [
    keys.record(requestId),
    keys.keyRpm(keyId),
    keys.keyUse(keyId),
    keys.account(tenantId),
    keys.blocked(flagOf(principal)),
    keys.blocked(tenantId),
    keys.inflight,
    keys.waiting(queue),
    keys.meanCompletion(keyId),
    keys.open(tenantId),
    keys.line(queue),
    keys.job(queue, requestId),
    keys.marker(queue),
    keys.queueMeta(queue),
    keys.body(requestId),
    ...(throttleOf(request) < limits.rpm && queue !== 'batch' ? [keys.throttle(endpoint, keyId)] : []),
    ...(limits.dailyRequests > 0 ? [keys.daily(keyId)] : []),
    ...(mode === 'live' ? [] : [keys.testAllowance(tenantId, dayOf(acceptedAt))]),
    ...(idempotency === undefined ? [] : [keys.idempotency(idempotency.name)]),
    ...(attempt === undefined ? [] : [keys.retries(attempt.name)]),
    ...(entityHash === undefined ? [] : [keys.entityRequests(tenantId, entityHash)]),
    ...(batch === undefined ? [] : [keys.lease(BATCH_LEASE), keys.closedBatch(batch.batchId)]),
  ];
}

/** Named for the reader; admit.lua takes the values in this order. */
function numbersOf(request: AdmissionRequest, { queueLimit, requestTimeoutMs }: AdmitSettings): number[] {
  const { queue, rates } = request;
  const { limits, ceilings, weight } = request.principal;
  const tpmOf = (limit: number) => (queue === 'batch' ? Math.max(1, Math.floor(limit * BATCH_LIMITS.tpmShare)) : limit);
  return Object.values({
    rpmLimit: limits.rpm,
    throttleLimit: throttleOf(request),
    tpmLimit: tpmOf(limits.tpm),
    dailyLimit: limits.dailyRequests,
    promptTokens: request.promptTokens,
    completionTokens: request.maxTokens,
    promptRate: rates.promptMicro,
    completionRate: rates.completionMicro,
    queueLimit,
    deadlineMs: requestTimeoutMs,
    weight,
    tenantRpm: ceilings.rpm ?? NONE,
    tenantTpm: ceilings.tpm === null ? NONE : tpmOf(ceilings.tpm),
    openLimit: ceilings.inFlight ?? NONE,
    tenantShare: Math.max(1, Math.floor(queueLimit * TENANT_SHARE)),
    isEntity: request.entityHash === undefined ? 0 : 1,
    inWindows: request.countedTokens ?? NONE,
  });
}

/**
 * Whether the record says how long the request's end is kept: its time differs from the service's, or MongoDB may have its
 * body (an intent), which every end has to know (keep-nothing.lua).
 */
function hasOwnRetention(request: AdmissionRequest, settings: AdmitSettings): boolean {
  const { retentionMs, idempotency, channel, queue } = request;
  const mayHaveIntent = queue !== 'batch' && (idempotency !== undefined || channel === '');
  return retentionMs !== undefined && (mayHaveIntent || retentionMs !== settings.retentionMs);
}

/** Named for the reader; admit.lua takes the values in this order. */
function shortTextsOf(
  request: AdmissionRequest,
  jobName: string,
  acceptedAt: number,
  settings: AdmitSettings,
): (string | number)[] {
  const { principal, rates, promptTokens, maxTokens, retentionMs } = request;
  const isLive = principal.mode === 'live';
  const promptMost = request.promptMostTokens ?? promptTokens;
  const mostMicro = Math.round(promptMost * rates.promptMicro + maxTokens * rates.completionMicro);
  return Object.values({
    isBilled: isLive ? 1 : 0,
    budget: isLive ? (principal.monthlyTokenBudget ?? '') : principal.testDailyTokens,
    month: monthOf(request.acceptedAt ?? acceptedAt),
    channel: request.channel,
    tenantId: principal.tenantId,
    keyId: principal.keyId,
    recordLifeMs: settings.recordLifeMs,
    tier: request.tier,
    onDisconnect: request.onDisconnect,
    fingerprint: (request.idempotency ?? request.attempt)?.fingerprint ?? '',
    queue: request.queue,
    leaderId: request.batch?.leaderId ?? '',
    ratesAndMost: `${rates.promptMicro} ${rates.completionMicro} ${promptMost + maxTokens} ${mostMicro}`,
    bodyLifeMs: bodyLifeMs(settings.requestTimeoutMs),
    jobName,
    ownRetentionMs: hasOwnRetention(request, settings) ? (retentionMs ?? '') : '',
    attempt: request.attempt === undefined ? '' : request.attempt.isRetry ? 'again' : 'first',
  });
}

/**
 * Keys and arguments of admit.lua. `acceptedAt` is by the shard's own clock, like the month and the day of a charge: an
 * ingress whose clock is ahead or behind must not look at another month's budget or another day's allowance.
 */
export function toAdmitCall(
  keyspace: Keyspace,
  request: AdmissionRequest,
  acceptedAt: number,
  settings: AdmitSettings,
): Parameters<Script> {
  const { requestId, principal, queue, body, metadataJson } = request;
  const job = storedChatJob(queue, requestId, { tenantId: principal.tenantId });
  return [
    keysOf(keyspace, request, acceptedAt),
    [
      requestId,
      JSON.stringify(numbersOf(request, settings)),
      textsOf(shortTextsOf(request, job.name, acceptedAt, settings)),
      body?.slice(0, -1) ?? '',
      job.data,
      job.opts,
      metadataJson ?? '',
    ],
  ];
}
