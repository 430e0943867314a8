import { outOfTime, ServiceError, toRetrySeconds, unexpectedError } from '../../shared/errors/service-error.ts';
import type { Usage } from '../../shared/contracts/events.ts';
import { toErrorDetail } from '../../shared/errors/error-body.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { ConversationRepository } from '../../shared/mongo/entities/conversation-repository.ts';
import { withTimeLimit } from '../../shared/lifecycle/clock.ts';
import { estimateUsage } from './spending.ts';
import { Interrupted, Stopped, isEmpty } from './stage.ts';
import type { Bound, Claimed, Outcome } from './stage.ts';

export interface ConcludeDeps {
  conversations: Pick<ConversationRepository, 'deleteTurn'>;
  log: Logger;
}

const NO_USAGE = { promptTokens: 0, completionTokens: 0 };

const DAY_MS = 86_400_000;

/** The end of a request waits this long for MongoDB to delete a turn; the deletion continues afterwards. */
const DELETE_MS = 2_000;

function exhaustedError(bound: Bound | undefined, { envelope }: Claimed): ServiceError {
  if (bound === 'budget') {
    return new ServiceError(
      'budget_exceeded',
      'The rest of the monthly token budget does not cover this request; wait for the next calendar month (UTC) or ask the administrator for more.',
    );
  }
  if (bound === 'allowance') {
    const midnight = envelope.acceptedAt - (envelope.acceptedAt % DAY_MS) + DAY_MS;
    return new ServiceError(
      'tpm_exceeded',
      "The rest of the daily token allowance for the tenant's test keys does not cover this request; shorten it, or wait for midnight UTC.",
      { retryAfterSeconds: toRetrySeconds(midnight - Date.now()) },
    );
  }
  return new ServiceError(
    'insufficient_credits',
    'The prepaid credit balance does not cover this request; buy credits or ask the administrator.',
  );
}

function stopError({ reason, bound }: Stopped, run: Claimed): ServiceError | undefined {
  if (reason === 'deadline') return outOfTime();
  return reason === 'exhausted' ? exhaustedError(bound, run) : undefined;
}

/** The tokens of the answer so far, counted by our own tokenizer. */
async function usageOf({ answer, envelope }: Claimed): Promise<Usage> {
  const { text, asked, promptTokens } = answer;
  if (isEmpty(answer)) return NO_USAGE;
  const { messages, maxTokens } = envelope.request;
  const usage = await estimateUsage(asked ?? messages, text, maxTokens);
  // Without `asked`, another delivery made the call; only its own count includes history and instruction.
  return asked === undefined && promptTokens > 0 ? { ...usage, promptTokens } : usage;
}

/** Unknown errors are bugs: logged, and answered as one generic error. */
function toServiceError(error: unknown, run: Claimed, log: Logger): ServiceError {
  // docs/spec.md#workers.
  if (error instanceof Interrupted) {
    run.answer.trace.reason = 'worker_died';
    return new ServiceError(
      'model_unavailable',
      'The answer was interrupted and cannot be continued; send the request again.',
      { retryAfterSeconds: 1 },
    );
  }
  if (error instanceof ServiceError) {
    return error;
  }
  log.error('A request failed unexpectedly.', { requestId: run.envelope.requestId, bug: error });
  return unexpectedError();
}

/**
 * Ends a failed or stopped run with an error, or with the part of the answer that exists. Undefined: another delivery
 * owns the request, so this one must not end it.
 */
export function createConclude({ conversations, log }: ConcludeDeps) {
  /**
   * A failed request leaves no turn, nor does an earlier delivery that died before it could finish. Even the delivery
   * numbered first may follow another, which Redis has lost.
   */
  async function deleteEarlierTurn({ envelope, claimedAt }: Claimed): Promise<void> {
    const { tenantId, requestId, request } = envelope;
    if (request.entityId === undefined) return;
    const deleting = conversations.deleteTurn(envelope, request.entityId, { requestId, claimedAt });
    try {
      await withTimeLimit(deleting, DELETE_MS, 'MongoDB has not answered in time');
    } catch (error) {
      log.error('What an interrupted request had stored could not be taken out of its entity.', {
        requestId,
        tenantId,
        error,
      });
    }
  }

  return async (run: Claimed, error: unknown): Promise<Outcome | undefined> => {
    const stop = error instanceof Stopped ? error : undefined;
    const stopped = stop?.reason;
    if (stopped === 'superseded' || stopped === 'shutdown') return undefined;
    await deleteEarlierTurn(run);
    const usage = await usageOf(run);
    if (stopped === 'cancelled') return { finishReason: 'cancelled', usage };
    if (stopped === 'exhausted' && !isEmpty(run.answer)) return { finishReason: 'length', usage };
    const failure = (stop === undefined ? undefined : stopError(stop, run)) ?? toServiceError(error, run, log);
    return { finishReason: 'error', usage, error: toErrorDetail(failure), cause: failure.cause };
  };
}
