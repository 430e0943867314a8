import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import { BreakerOpenError } from './circuit.ts';
import { ProviderError } from '../providers/provider.ts';
import { ProviderTimeout } from './run-provider-call.ts';
import { TooLongError } from './fit-window.ts';
import { NotJsonError, noJson } from './json-answer.ts';

/** A provider may ask for any wait; the caller is given one within these bounds. */
const TOLD_WAIT_MIN_SECONDS = 5;
const TOLD_WAIT_MAX_SECONDS = 3_600;

function toldWaitSeconds(waitMs: number): number {
  if (waitMs === Infinity) return TOLD_WAIT_MIN_SECONDS;
  return Math.min(TOLD_WAIT_MAX_SECONDS, Math.max(TOLD_WAIT_MIN_SECONDS, toRetrySeconds(waitMs)));
}

/**
 * The caller's error when no target answered. `waitMs`: the shortest wait that a target asked for; Infinity: none did.
 * `windowTokensMin`: the largest window of a target that took the prompt for too long.
 */
export function toCallerError(
  error: unknown,
  { waitMs, windowTokensMin }: { waitMs: number; windowTokensMin: number },
): unknown {
  if (error instanceof TooLongError)
    return new ServiceError('context_length_exceeded', error.message, { param: error.param });
  if (error instanceof NotJsonError) return noJson(error);
  if (error instanceof BreakerOpenError) {
    return new ServiceError(
      'model_unavailable',
      'The model provider is not available at the moment; try again later.',
      {
        retryAfterSeconds: toRetrySeconds(error.retryInMs),
      },
    );
  }
  if (!(error instanceof ProviderError)) return error;
  if (error.fault === 'too_long') {
    // The provider may count otherwise, or its window be smaller than the administrator has set.
    return new ServiceError(
      'context_length_exceeded',
      `The messages are too long for the model, whose maximum context length is ${windowTokensMin} tokens or less; send fewer or shorter ones.`,
      { cause: error, param: 'messages' },
    );
  }
  if (error.fault === 'filtered') {
    return new ServiceError('content_policy_violation', "The model provider's content filter refused the messages.", {
      cause: error,
    });
  }
  if (error.fault === 'caller') {
    return new ServiceError(
      'invalid_request',
      'The model provider refused the request as invalid; check messages and parameters.',
      { cause: error },
    );
  }
  if (error instanceof ProviderTimeout) {
    return new ServiceError('timeout', 'The model did not answer within its time limit; try again.', { cause: error });
  }
  return new ServiceError(
    'model_unavailable',
    'The model provider is not available at the moment; try again with exponential backoff.',
    {
      cause: error,
      retryAfterSeconds: toldWaitSeconds(waitMs),
    },
  );
}
