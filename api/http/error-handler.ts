import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';

import { ERRORS } from '../../shared/errors/codes.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import { toErrorDetail, toErrorObject } from '../../shared/errors/error-body.ts';
import { ServiceError, unexpectedError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { Refusal } from '../../shared/mongo/requests/request-log.ts';
import { isMongoAway } from '../../shared/mongo/faults.ts';
import { isRedisFault } from '../../shared/redis/redis-faults.ts';
import { contextOf } from './request-context.ts';

/** Tells whether a store is away or cannot serve. */
export function isStoreFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // The caller's own fault, whatever its cause: a client that leaves amid its body breaks its socket as a store does.
  if (error instanceof ServiceError && ERRORS[error.code].status < 500) return false;
  return isRedisFault(error) || isMongoAway(error);
}

/** A store that is away or cannot serve is 503 (docs/spec.md#stores-away); mount it before the handler that answers. */
export const storeFault: ErrorRequestHandler = (error: unknown, _req, _res, next) => {
  next(
    isStoreFault(error)
      ? new ServiceError('model_unavailable', 'A store does not answer at the moment; try again shortly.', {
          cause: error,
          retryAfterSeconds: 1,
        })
      : error,
  );
};

export interface ErrorHandlerDeps {
  log: Logger;
  /** Counts, sets the rate-limit headers, and returns the error to send: a 429 over the limit. Absent: no counting. */
  count?: (error: ServiceError, res: Response) => Promise<ServiceError>;
  /** Hears of every error before it is counted, with the caller's address. */
  note?: (code: ErrorCode, address: string) => void;
  /** Hears of every refusal of a known key. */
  refuse?: (refusal: Refusal) => void;
}

/** Refusals that the administration finds (docs/spec.md#finding-a-request). */
const FOUND_STATUSES: ReadonlySet<number> = new Set([400, 401, 402, 403, 429]);

/** Undefined: the refusal of a stranger, or the end of a request that was accepted. */
function refusalOf(error: ServiceError, req: Request, res: Response): Refusal | undefined {
  const { requestId, principal, refusedPrincipal, isAccepted } = contextOf(res);
  const { tenantId, mode, keyId } = principal ?? refusedPrincipal ?? {};
  if (isAccepted === true || !FOUND_STATUSES.has(ERRORS[error.code].status)) return undefined;
  if (tenantId === undefined || mode === undefined || keyId === undefined) return undefined;
  return { requestId, tenantId, mode, keyId, code: error.code, endpoint: `${req.method} ${patternOf(req)}` };
}

const LIST = new Intl.ListFormat('en');

/** For a path that exists with other methods. Express answers HEAD wherever it answers GET. */
export function methodNotAllowed(...served: string[]): RequestHandler {
  const allowed = served.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return (_req, res) => {
    res.setHeader('Allow', allowed.join(', '));
    throw new ServiceError('method_not_allowed', `This path answers ${LIST.format(allowed)} only.`);
  };
}

/** The route's pattern: the path itself may name an entity, and a log outlives its deletion. */
function patternOf(req: Request): string {
  // Express types `route` as any; it is set once a route has matched.
  const { path = 'none' } = (req.route as { path?: string } | undefined) ?? {};
  return path;
}

function toServiceError(error: unknown, req: Request, res: Response, log: Logger): ServiceError {
  if (error instanceof ServiceError) return error;
  // Express reports a malformed `%` escape in the path so.
  if (error instanceof URIError) return new ServiceError('invalid_request', 'The path has a malformed percent escape.');
  log.error('A request failed unexpectedly.', {
    requestId: contextOf(res).requestId,
    path: patternOf(req),
    bug: error,
  });
  return unexpectedError();
}

/** Every 503 says when to try again (docs/spec.md#retry-after). */
function retryAfterOf(error: ServiceError): number | undefined {
  return error.retryAfterSeconds ?? (ERRORS[error.code].status === 503 ? 1 : undefined);
}

/** A client that waits longer than this within one call looks as if it hung. */
const RETRY_WITHIN_SECONDS = 120;

/**
 * OpenAI's clients try 409, 429 and 5xx again by themselves, and wait for hours where `Retry-After` says so, unless
 * `X-Should-Retry` tells them not to (docs/decisions/0008-ambiguous-admissions.md).
 */
function setRetryHeaders(res: Response, error: ServiceError): void {
  const retryAfter = retryAfterOf(error);
  if (retryAfter !== undefined) res.setHeader('Retry-After', retryAfter);
  if (error.isFinal || (retryAfter ?? 0) > RETRY_WITHIN_SECONDS) res.setHeader('X-Should-Retry', 'false');
}

const REMAINING = 'X-RateLimit-Remaining-Requests';
const RESET = 'X-RateLimit-Reset-Requests';

/** Headers describe the limit that binds, such as the tenant's: a client that paces its calls by them has to wait. */
function setBindingLimit(res: Response, { code, retryAfterSeconds }: ServiceError): void {
  if (code !== 'rpm_exceeded' || retryAfterSeconds === undefined) return;
  const [remaining, resetSeconds] = [REMAINING, RESET].map((name) => res.getHeader(name));
  if (resetSeconds === undefined) return;
  res.setHeader(REMAINING, 0);
  res.setHeader(RESET, Math.max(remaining === 0 ? Number(resetSeconds) : 0, retryAfterSeconds));
}

/** Answers with the uniform error object; the last handler of an app. */
export function createErrorHandler({ log, count, note, refuse }: ErrorHandlerDeps): ErrorRequestHandler {
  // Express tells error handlers by their four parameters.
  return async (fault: unknown, req, res, next) => {
    if (res.headersSent) {
      log.error('An answer broke off.', { requestId: contextOf(res).requestId, path: patternOf(req), error: fault });
      // Express's own handler cuts the connection: the client must not take a part for the whole.
      next(fault);
      return;
    }
    let error = toServiceError(fault, req, res, log);
    // An unknown path is answered 404 whatever the key is, but a wrong key was tried.
    note?.(contextOf(res).hasFailedKey === true ? 'invalid_api_key' : error.code, req.ip ?? 'unknown');
    if (count !== undefined) error = await count(error, res);
    const { status } = ERRORS[error.code];
    const refusal = refuse && refusalOf(error, req, res);
    if (refusal !== undefined) refuse?.(refusal);
    setRetryHeaders(res, error);
    setBindingLimit(res, error);
    // RFC 9110 section 11.6.1.
    if (status === 401) res.setHeader('WWW-Authenticate', 'Bearer');
    // A 503 without a cause is the end of a request, which its worker has logged, or a limit, which has its metric.
    if (status === 503)
      log[error.cause === undefined ? 'debug' : 'warn']('A request was answered 503.', {
        requestId: contextOf(res).requestId,
        code: error.code,
        status,
        error: error.cause,
      });
    // The handler may have set the type of the answer that it could not give.
    res
      .status(status)
      .type('json')
      .json({ error: toErrorObject(toErrorDetail(error), contextOf(res).requestId) });
  };
}
