import type { Response } from 'express';

import { toRefusal } from '../../shared/admission/refusals.ts';
import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import { ADDRESS_FAILURES_PER_MINUTE } from '../../shared/domain/limits/defaults.ts';
import type { AdmissionStore } from '../../shared/infra/redis/requests/admission-store.ts';
import { contextOf } from '../http/request-context.ts';
import type { RequestContext } from '../http/request-context.ts';
import { setAddressHeaders, setKeyHeaders } from './limit-headers.ts';

const AUTHENTICATION_FAILURES: ReadonlySet<string> = new Set(['missing_api_key', 'invalid_api_key', 'expired_api_key']);

/**
 * Counts a refused request against its key, or a failed authentication against its address, so that junk is limited
 * too. Returns the error to send: over the limit, the 429 instead of what was wrong with the request. With Redis away
 * the refusal stands and the headers name the limits alone.
 */
export function createRefusalCounter(store: Pick<AdmissionStore, 'count' | 'countAddress'>) {
  async function countKey(error: ServiceError, res: Response, context: RequestContext): Promise<ServiceError> {
    const { principal, requestId } = context;
    if (principal === undefined) return error;
    const admission = await store.count(requestId, principal, !context.counted);
    context.counted = true;
    setKeyHeaders(res, principal, admission);
    const { verdict } = admission;
    return verdict === 'rpm' || verdict === 'revoked' || verdict === 'suspended'
      ? toRefusal({ ...admission, verdict }, principal, 'chat')
      : error;
  }

  async function countAddress(error: ServiceError, res: Response, requestId: string): Promise<ServiceError> {
    const count = await store.countAddress(requestId, res.req.ip ?? 'unknown', AUTHENTICATION_FAILURES.has(error.code));
    setAddressHeaders(res, count);
    if (count.allowed) return error;
    return new ServiceError(
      'rpm_exceeded',
      `More than ${ADDRESS_FAILURES_PER_MINUTE} failed authentications per minute came from this address; wait as Retry-After says.`,
      { retryAfterSeconds: toRetrySeconds(count.retryAfterMs) },
    );
  }

  return async (error: ServiceError, res: Response): Promise<ServiceError> => {
    const context = contextOf(res);
    if (res.hasHeader('X-RateLimit-Limit-Requests')) return error;
    try {
      return await (context.principal === undefined
        ? countAddress(error, res, context.requestId)
        : context.counted
          ? keepHeaders(error, res, context)
          : countKey(error, res, context));
    } catch {
      return keepHeaders(error, res, context);
    }
  };

  /** The admission was tried and gave no figures: Redis is away, and asking it again would only take time. */
  function keepHeaders(error: ServiceError, res: Response, { principal }: RequestContext): ServiceError {
    if (principal === undefined) setAddressHeaders(res);
    else setKeyHeaders(res, principal);
    return error;
  }
}
