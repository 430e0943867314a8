import { estimatePromptTokens, promptTokensAbove } from '../../shared/admission/admission.ts';
import type { createAdmission } from '../../shared/admission/admission.ts';
import type { Enqueuer } from '../../shared/admission/enqueue.ts';
import { toRefusal } from '../../shared/admission/refusals.ts';
import type { Refusal } from '../../shared/admission/refusals.ts';
import { BATCH_LIMITS } from '../../shared/contracts/batches.ts';
import type { BatchWait } from '../../shared/contracts/batches.ts';
import type { Tier } from '../../shared/contracts/chat-request.ts';
import { parseStoredRequest, UnreadableError } from '../../shared/contracts/stored-request.ts';
import { STORED_ANSWER_MS } from '../../shared/contracts/stored-answer.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import { toErrorDetail } from '../../shared/errors/error-body.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { SendableLine } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import type { LineTokens } from './line-tokens.ts';
import type { OpenLine } from './open-batch.ts';
import type { ProviderWatch } from './provider-watch.ts';

export type LineSendResult =
  | { kind: 'sent'; promptTokens?: number }
  /** The line was refused for a temporary reason; send it again after `ms` milliseconds. */
  | { kind: 'wait'; waitFor: BatchWait | null; ms: number }
  /** The line was not sent, because no provider of its tier answers. */
  | { kind: 'held'; tier: Tier }
  /** The line fails: it would be refused again. */
  | { kind: 'refused'; error: ErrorDetail };

export interface SendLineDeps {
  admit: ReturnType<typeof createAdmission>;
  enqueuer: Pick<Enqueuer, 'enqueue' | 'takeBack'>;
  watch: Pick<ProviderWatch, 'isDown' | 'takeProbe'>;
  /** The name under which this process holds the lease of the shard's batches. Redis admits only the leader's lines. */
  leaderId: string;
  log: Logger;
}

/**
 * What a line waits for after a temporary refusal; a suspension is one, because it may be lifted. After any other
 * refusal the line fails (docs/spec.md#batch-lines).
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
  lane: 'queue',
  moved: 'queue',
  moving: 'queue',
};

/** Bounds of the wait. The upper one is short: requests may end early, and credits may be bought at any time. */
const WAIT_MIN_MS = 250;
const WAIT_MAX_MS = 2_000;

/**
 * How many tokens a line counts beyond its prompt while nothing better is known. Lines may take a share of the token
 * limits. The number is such that two of these lines fit into that share, each with half of it. If the prompt takes
 * more than a third of the share, the number is a quarter of what the prompt leaves, and only one such line fits.
 */
function roomOf({ limits, ceilings }: Principal, promptTokens: number): number {
  const share = Math.min(limits.tpm, ceilings.tpm ?? Infinity) * BATCH_LIMITS.tpmShare;
  return Math.max(share / 2 - promptTokens, (share - promptTokens) / 4);
}

/** Admits a line, like any request, and enqueues it. Safe to repeat, because a line's request id is fixed. */
export function createSendLine({ admit, enqueuer, watch, leaderId, log }: SendLineDeps) {
  return async (
    line: SendableLine & Pick<OpenLine, 'isProbe'>,
    principal: Principal,
    { batchId, tokens }: { batchId: string; tokens: Pick<LineTokens, 'next'> },
  ): Promise<LineSendResult> => {
    // Admission knows of a suspension only from a flag in Redis, which Redis may have lost.
    if (principal.tenantStatus === 'suspended') return { kind: 'wait', waitFor: 'account', ms: WAIT_MAX_MS };
    try {
      const request = parseStoredRequest(line.requestJson ?? '');
      const tier = request.model ?? principal.defaultModel;
      if (line.isProbe !== true && watch.isDown(tier) && !watch.takeProbe(tier)) return { kind: 'held', tier };
      const promptTokens = estimatePromptTokens(request);
      const most = promptTokensAbove(request) + request.maxTokens;
      const counted = tokens.next(most, roomOf(principal, promptTokens), request.entityId !== undefined);
      const outcome = await admit({
        requestId: line.requestId,
        principal,
        endpoint: 'batch',
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
      const { figures, verdict } = outcome;
      const waitFor = WAITS[verdict];
      if (waitFor === undefined)
        return { kind: 'refused', error: toErrorDetail(toRefusal({ ...figures, verdict }, principal, 'batch')) };
      return { kind: 'wait', waitFor, ms: Math.min(WAIT_MAX_MS, Math.max(WAIT_MIN_MS, figures.retryAfterMs)) };
    } catch (error) {
      if (error instanceof UnreadableError) {
        log.error('A line of a batch cannot be read and is ended.', { requestId: line.requestId, error });
        return { kind: 'refused', error: { code: 'internal_error', message: 'The line could not be read.' } };
      }
      // A store did not answer; the admission has been voided, or is being voided.
      if (error instanceof ServiceError) return { kind: 'wait', waitFor: null, ms: WAIT_MAX_MS };
      throw error;
    }
  };
}

export type SendLine = ReturnType<typeof createSendLine>;
