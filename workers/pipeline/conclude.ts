import { ServiceError } from '../../shared/errors/service-error.ts';
import { toErrorDetail } from '../../shared/errors/error-body.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { estimateUsage } from '../attempt/estimate-usage.ts';
import { Stopped } from './stage.ts';
import type { Claimed, Outcome, StopReason } from './stage.ts';

const NO_USAGE = { promptTokens: 0, completionTokens: 0 };

function stopError(reason: StopReason): ServiceError | undefined {
  if (reason === 'deadline') return new ServiceError('timeout', 'The request did not end within its time limit.');
  if (reason === 'exhausted') {
    return new ServiceError(
      'insufficient_credits',
      'The prepaid credit balance does not cover this request; buy credits or ask the administrator.',
    );
  }
  return undefined;
}

/** The error a failed run ends with; a bug is logged and answered as one generic error, never guessed into a known code. */
function toServiceError(error: unknown, run: Claimed, log: Logger): ServiceError {
  if (error instanceof ServiceError) {
    if (error.cause !== undefined)
      log.warn('A request failed.', { requestId: run.ref.requestId, code: error.code, error: error.cause });
    return error;
  }
  log.error('A request failed unexpectedly.', { requestId: run.ref.requestId, error });
  return new ServiceError(
    'internal_error',
    'The service failed unexpectedly; try again, and name the request id if it stays.',
  );
}

/**
 * How a run ends that did not come to its own end: with an error, or with what there is of the answer. Undefined: this
 * attempt must not end it, because another one owns the request.
 */
export function createConclude(log: Logger) {
  return async (run: Claimed, error: unknown): Promise<Outcome | undefined> => {
    const { text, asked } = run.answer;
    const usage = text === '' ? NO_USAGE : await estimateUsage(asked ?? run.envelope.request.messages, text);
    if (error instanceof Stopped) {
      if (error.reason === 'superseded' || error.reason === 'shutdown') return undefined;
      if (error.reason === 'cancelled') return { finishReason: 'cancelled', usage };
      if (error.reason === 'exhausted' && text !== '') return { finishReason: 'length', usage };
    }
    const failure = error instanceof Stopped ? stopError(error.reason) : undefined;
    return { finishReason: 'error', usage, error: toErrorDetail(failure ?? toServiceError(error, run, log)) };
  };
}

/** For a request whose earlier attempt died after it had sent text (contract.md section 7, Worker killed). */
export function interruption(): ServiceError {
  return new ServiceError(
    'model_unavailable',
    'The answer was interrupted and cannot be continued; send the request again.',
    { retryAfterSeconds: 1 },
  );
}
