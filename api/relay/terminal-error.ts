import type { Terminal } from '../../shared/contracts/events.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';

/** The HTTP error for a request that ended without an answer; undefined when there is one to send. */
export function errorOf(terminal: Terminal, hasText: boolean): ServiceError | undefined {
  const { error, finishReason } = terminal;
  if (error !== undefined) {
    return new ServiceError(error.code, error.message, {
      ...(error.param === undefined ? {} : { param: error.param }),
      ...(error.reason === undefined ? {} : { reason: error.reason }),
      ...(error.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: error.retryAfterSeconds }),
    });
  }
  if (finishReason === 'cancelled' && !hasText)
    return new ServiceError('conflict', 'The request was cancelled before it had an answer.');
  return undefined;
}
