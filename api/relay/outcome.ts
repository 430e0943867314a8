import type { StreamEntry, Terminal } from '../../shared/contracts/events.ts';
import { outOfTime, ServiceError } from '../../shared/errors/service-error.ts';
import { toErrorDetail, toErrorObject } from '../../shared/errors/error-body.ts';
import type { ErrorObject } from '../../shared/errors/error-body.ts';
import { completeAnswer } from './answer.ts';
import type { AnswerHead } from './answer.ts';

/**
 * A worker ends a request at its deadline; if no worker is left, the sweep does. If neither does, the relay gives up
 * this much later.
 */
export const DEADLINE_MARGIN_MS = 20_000;

/** The last event of a stream that has begun, but that nobody has ended in time. */
export function timedOut(): Terminal {
  const usage = { promptTokens: 0, completionTokens: 0 };
  return { finishReason: 'error', usage, error: toErrorDetail(outOfTime()) };
}

/** The HTTP error for a request that ended without an answer; undefined if there is an answer to send. */
export function errorOf(terminal: Terminal, hasText: boolean): ServiceError | undefined {
  const { error, finishReason } = terminal;
  if (error !== undefined) {
    return new ServiceError(error.code, error.message, error);
  }
  if (finishReason === 'cancelled' && !hasText)
    return new ServiceError('conflict', 'The request was cancelled before it had an answer.', { isFinal: true });
  return undefined;
}

/**
 * The error of a stream that broke off, for a caller that asks for a complete answer under its Idempotency-Key. The key
 * stands for the text that was sent, so no retry under it can end differently
 * (docs/decisions/0008-ambiguous-admissions.md).
 */
export function brokenOff(error: ServiceError): ServiceError {
  const more = 'The stream under this Idempotency-Key broke off amid its answer; send a new key.';
  return new ServiceError(error.code, `${error.message} ${more}`, { ...toErrorDetail(error), isFinal: true });
}

/** How a request ended, as its look-up shows it: with an answer, as JSON text, or with an error. */
export type EndedAs = { responseJson: string } | { error: ErrorObject };

/** `entries`: the whole stream so far. Undefined: it has not ended. */
export function outcomeOf(head: AnswerHead, entries: readonly StreamEntry[]): EndedAs | undefined {
  const terminal = entries.at(-1)?.terminal;
  if (terminal === undefined) return undefined;
  const literals = entries.flatMap((entry) => entry.deltas);
  const error = errorOf(terminal, literals.length > 0);
  return error === undefined
    ? { responseJson: completeAnswer(head, literals, terminal) }
    : { error: toErrorObject(toErrorDetail(error), head.requestId) };
}
