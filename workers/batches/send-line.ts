import { BATCH_LIMITS } from '../../shared/contracts/batches.ts';
import type { BatchWait } from '../../shared/contracts/batches.ts';
import type { Tier } from '../../shared/contracts/chat-request.ts';
import { STORED_ANSWER_MS, UnreadableError, parseStoredRequest } from '../../shared/contracts/jobs.ts';
import { allowsScope } from '../../shared/domain/api-key.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { fitRequest, tierOf } from '../../shared/domain/routing.ts';
import type { RoutingTable } from '../../shared/domain/routing.ts';
import { toErrorDetail } from '../../shared/errors/error-body.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { createAccountRepository } from '../../shared/mongo/accounts/account-repository.ts';
import type { SendableLine } from '../../shared/mongo/batches/batch-work-repository.ts';
import type { MongoConnection } from '../../shared/mongo/connection.ts';
import type { PrincipalRepository } from '../../shared/mongo/tenants/principal-repository.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import type { ReplayLog } from '../../shared/redis/redis-return.ts';
import type { AdmissionStore } from '../../shared/requests/admission-store.ts';
import { createAdmission, estimatePromptTokens, promptTokensAbove } from '../../shared/requests/admission.ts';
import type { AdmissionDeps } from '../../shared/requests/admission.ts';
import { createQueueOrderStore } from '../../shared/requests/body-store.ts';
import { createEnqueuer } from '../../shared/requests/enqueue.ts';
import type { Enqueuer } from '../../shared/requests/enqueue.ts';
import { toRefusal } from '../../shared/requests/refusals.ts';
import type { Refusal } from '../../shared/requests/refusals.ts';
import type { LineTokens } from './line-state.ts';
import type { OpenBatch, OpenLine } from './open-batch.ts';
import type { ProviderWatch } from './provider-watch.ts';

const NO_EMBEDDINGS: ErrorDetail = {
  code: 'endpoint_not_allowed',
  message: 'The API key of this batch has no scope for embeddings.',
};

export type LineSendResult =
  | { kind: 'sent'; promptTokens?: number }
  /** The line was refused for a temporary reason; send it again after `ms` milliseconds. */
  | { kind: 'wait'; waitFor: BatchWait | null; ms: number }
  /** The line was not sent, because no provider of its tier answers. */
  | { kind: 'held'; tier: Tier }
  /** The line fails: it would be refused again. */
  | { kind: 'refused'; error: ErrorDetail };

export interface SendLineDeps {
  routing: { current(): RoutingTable };
  admit: ReturnType<typeof createAdmission>;
  enqueuer: Pick<Enqueuer, 'enqueue' | 'voidLater'>;
  watch: Pick<ProviderWatch, 'isDown' | 'takeProbe'>;
  /** The name under which this process holds the lease of the shard's batches. Redis admits only the leader's lines. */
  leaderId: string;
  log: Logger;
}

/**
 * A line waits after a temporary refusal, such as a suspension, which may be lifted, or a key whose earlier revision
 * this process still has. After any other refusal the line fails (docs/spec.md#batch-lines).
 */
const WAITS: Partial<Record<Refusal, BatchWait>> = {
  tpm: 'tpm',
  tenant_tpm: 'tpm',
  unpaid: 'tpm',
  test_tokens: 'test_tokens',
  test_tokens_in_flight: 'test_tokens',
  daily: 'daily_requests',
  credits: 'credits',
  credits_in_flight: 'credits',
  budget_in_flight: 'budget',
  suspended: 'account',
  changed: 'account',
  queue: 'queue',
  moved: 'queue',
  moving: 'queue',
};

/** Bounds of the wait. The upper one is short: requests may end early, and credits may be bought at any time. */
const WAIT_MIN_MS = 250;
const WAIT_MAX_MS = 2_000;

/**
 * Returns the tokens that a line counts beyond its prompt while nothing better is known: two such lines fit into lines'
 * share of the token limits. Where the prompt takes more than a third of the share, it is a quarter of what the prompt
 * leaves, and one fits.
 */
function roomOf({ limits, ceilings }: Principal, promptTokens: number): number {
  const share = Math.min(limits.tpm, ceilings.tpm ?? Infinity) * BATCH_LIMITS.tpmShare;
  return Math.max(share / 2 - promptTokens, (share - promptTokens) / 4);
}

function afterRefusal(
  { figures, verdict }: Extract<Awaited<ReturnType<SendLineDeps['admit']>>, { kind: 'refused' }>,
  principal: Principal,
): LineSendResult {
  const waitFor = WAITS[verdict];
  if (waitFor === undefined)
    return { kind: 'refused', error: toErrorDetail(toRefusal({ ...figures, verdict }, principal, 'batch')) };
  return { kind: 'wait', waitFor, ms: Math.min(WAIT_MAX_MS, Math.max(WAIT_MIN_MS, figures.retryAfterMs)) };
}

/** Throws what is no fault of a line or a store. */
function afterFault(error: unknown, requestId: string, log: Logger): LineSendResult {
  if (error instanceof UnreadableError) {
    log.error('A line of a batch cannot be read and is ended.', { requestId, error });
    return { kind: 'refused', error: { code: 'internal_error', message: 'The line could not be read.' } };
  }
  if (!(error instanceof ServiceError)) throw error;
  if (error.code === 'model_not_found') return { kind: 'refused', error: toErrorDetail(error) };
  // A store did not answer; the admission has been voided, or is being voided.
  return { kind: 'wait', waitFor: null, ms: WAIT_MAX_MS };
}

/** Admits a line, like any request, and enqueues it. Safe to repeat, because a line's request id is fixed. */
export function createSendLine({ routing, admit, enqueuer, watch, leaderId, log }: SendLineDeps) {
  return async (
    line: SendableLine & OpenLine,
    principal: Principal,
    { batchId, tokens }: { batchId: string; tokens: LineTokens },
  ): Promise<LineSendResult> => {
    // Admission knows of a suspension only from a flag in Redis, which Redis may have lost.
    if (principal.tenantStatus === 'suspended') return { kind: 'wait', waitFor: 'account', ms: WAIT_MAX_MS };
    try {
      const stored = parseStoredRequest(line.requestJson ?? '');
      if (stored.task !== undefined && !allowsScope(principal.scopes, 'embeddings'))
        return { kind: 'refused', error: NO_EMBEDDINGS };
      const tier = tierOf(routing.current(), stored, principal.defaultModel);
      const request = fitRequest(routing.current(), tier, stored);
      if (line.isProbe !== true && watch.isDown(tier) && !watch.takeProbe(tier)) return { kind: 'held', tier };
      const promptTokens = estimatePromptTokens(request);
      const most = promptTokensAbove(request) + request.maxTokens;
      const counted = tokens.next(most, roomOf(principal, promptTokens), request.entityId !== undefined);
      const outcome = await admit({
        requestId: line.requestId,
        principal,
        endpoint: 'batch',
        tier,
        stream: false,
        request,
        countedTokens: Math.max(1, promptTokens + counted),
        channel: '',
        idempotency: undefined,
        batch: { batchId, leaderId },
        onDisconnect: 'finish',
        answerStorage: undefined,
        isEnqueuedAtOnce: true,
        // Shortened once the answer is in the batch's results (collect-ends.ts).
        retentionMs: STORED_ANSWER_MS,
      });
      if (outcome.kind === 'admitted') {
        if (!outcome.isQueued) await enqueuer.enqueue(outcome.envelope, principal);
        return { kind: 'sent', promptTokens };
      }
      // Sent before, led by another process now, or voided: the next look at lines in flight finds out which.
      if (outcome.kind === 'joined' || outcome.verdict === 'void') return { kind: 'sent' };
      return afterRefusal(outcome, principal);
    } catch (error) {
      return afterFault(error, line.requestId, log);
    }
  };
}

export type SendLine = ReturnType<typeof createSendLine>;

/** A `fault` says why the batch's key or its tenant may no longer send. */
export type LineSender = { principal: Principal } | { fault: ErrorDetail };

/** A key's permissions are cached for so many milliseconds; admission sees revocations and suspensions at once. */
export const SENDER_MS = 2_000;

const REVOKED: ErrorDetail = { code: 'invalid_api_key', message: 'The API key of this batch has been revoked.' };
const KEEPS_NOTHING: ErrorDetail = {
  code: 'conflict',
  message: 'The tenant keeps nothing of its conversations (`retention_seconds` is 0).',
};
const NOT_ALLOWED: ErrorDetail = {
  code: 'endpoint_not_allowed',
  message: 'The API key of this batch has no scope for chat any more.',
};
const EXPIRED: ErrorDetail = { code: 'expired_api_key', message: 'The API key of this batch has expired.' };

export function createFindSender(principals: Pick<PrincipalRepository, 'findByKey'>, clock: Clock) {
  const known = new WeakMap<OpenBatch, { sender: LineSender; until: number }>();

  async function lookUp({ row }: OpenBatch): Promise<LineSender> {
    const principal = await principals.findByKey(row.tenantId, row.keyId);
    if (principal === undefined || principal.keyStatus === 'revoked') return { fault: REVOKED };
    if (principal.expiresAt !== undefined && principal.expiresAt <= clock.now()) return { fault: EXPIRED };
    if (!allowsScope(principal.scopes, 'chat')) return { fault: NOT_ALLOWED };
    if (principal.retentionSeconds === 0) return { fault: KEEPS_NOTHING };
    return { principal };
  }

  return async (batch: OpenBatch): Promise<LineSender> => {
    const last = known.get(batch);
    if (last !== undefined && last.until > performance.now()) return last.sender;
    const sender = await lookUp(batch);
    known.set(batch, { sender, until: performance.now() + SENDER_MS });
    return sender;
  };
}

export type FindSender = ReturnType<typeof createFindSender>;

export interface OpenSendLineDeps extends Pick<
  AdmissionDeps,
  'accountStore' | 'routing' | 'isFull' | 'pseudonyms' | 'clock' | 'log'
> {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  admissions: AdmissionStore;
  /** Replayed whenever Redis is back. */
  replayLog: ReplayLog;
  requestTimeoutMs: number;
  workerId: string;
}

export function openSendLine(deps: OpenSendLineDeps, watch: ProviderWatch): SendLine {
  const { mongo, redis, keyspace, admissions, requestTimeoutMs } = deps;
  const voidLine: AdmissionStore['voidPermanently'] = (requestId, owner, last) =>
    admissions.void(requestId, owner, last);
  const enqueuer = createEnqueuer({
    ...deps,
    queueOrder: createQueueOrderStore(redis, keyspace, requestTimeoutMs),
    // No caller got an error for the line, so if a worker already has it, it runs on and is later found as sent.
    store: { voidPermanently: voidLine, voidRefused: voidLine },
    giveUpAfterMs: requestTimeoutMs,
  });
  const admit = createAdmission({
    ...deps,
    store: admissions,
    accounts: createAccountRepository(mongo),
    voidLater: (requestId, principal, isRefused) => {
      // A line refused by a full Redis is sent again under the same id; if it was admitted before, it is found.
      if (!isRefused) enqueuer.voidLater(requestId, principal);
    },
  });
  return createSendLine({ ...deps, admit, enqueuer, watch, leaderId: deps.workerId });
}
