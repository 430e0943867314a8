import type { ErrorCode } from './codes.ts';

export interface ServiceErrorOptions {
  /** For the operator's log only; never shown to the caller. */
  cause?: unknown;
  /** The invalid field, as the caller wrote it: `messages[3].content`. */
  param?: string;
  /** Whole seconds after which the same call is admitted if nothing else changes. */
  retryAfterSeconds?: number;
  /** An automatic retry would undo what somebody asked for, or fail in the same way. */
  isFinal?: boolean;
  /** A machine-readable detail beside the code: `in_flight` (docs/spec.md#holds). */
  reason?: string;
}

/** A fault that a caller may know, in a sentence written for the caller. Anything else that is thrown is a bug. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly isFinal: boolean;
  readonly reason: string | undefined;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.param = options.param;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.isFinal = options.isFinal ?? false;
    this.reason = options.reason;
  }
}

/** The part of a bug that a caller sees; the operator's log says more. */
export function unexpectedError(): ServiceError {
  return new ServiceError(
    'internal_error',
    'The service failed unexpectedly; try again, and name the request id if it stays.',
  );
}

/** 504 for a request that has reached its own time limit, whichever part notices. */
export function outOfTime(): ServiceError {
  return new ServiceError(
    'timeout',
    'The request did not end within its time limit; try again, perhaps with a smaller `max_tokens`.',
  );
}

/** A wait as `Retry-After` gives it: whole seconds, at least one. */
export function toRetrySeconds(waitMs: number): number {
  return Math.max(1, Math.ceil(waitMs / 1000));
}
