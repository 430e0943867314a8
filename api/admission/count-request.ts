import type { RequestHandler } from 'express';

import { toRefusal } from '../../shared/admission/refusals.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import { LOOKUPS_PER_MINUTE } from '../../shared/domain/limits/defaults.ts';
import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import type { Admission, AdmissionStore } from '../../shared/infra/redis/requests/admission-store.ts';
import { contextOf, principalOf } from '../http/request-context.ts';
import { setKeyHeaders } from './limit-headers.ts';

type Count = (requestId: string, principal: Principal) => Promise<Admission>;
type Refuse = (admission: Admission, principal: Principal) => ServiceError;

function createCounter(count: Count, overLimit: Refuse): RequestHandler {
  return async (_req, res, next) => {
    const context = contextOf(res);
    const principal = principalOf(res);
    context.counted = true;
    const admission = await count(context.requestId, principal).catch((cause: unknown) => {
      throw new ServiceError(
        'model_unavailable',
        'The service cannot take requests at the moment; try again shortly.',
        {
          cause,
          retryAfterSeconds: 1,
        },
      );
    });
    setKeyHeaders(res, principal, admission);
    const { verdict } = admission;
    if (verdict === 'rpm') throw overLimit(admission, principal);
    if (verdict === 'revoked' || verdict === 'suspended') throw toRefusal({ ...admission, verdict }, principal, 'chat');
    next();
  };
}

/** Counts a request that looks up, resumes or cancels another: it has a limit of its own and takes nothing of the rpm. */
export function createCountLookup(store: Pick<AdmissionStore, 'countLookup'>): RequestHandler {
  return createCounter(store.countLookup, ({ retryAfterMs }) => {
    const message = `The limit of ${LOOKUPS_PER_MINUTE} look-ups per minute and key is reached; wait as Retry-After says.`;
    return new ServiceError('rpm_exceeded', message, {
      retryAfterSeconds: toRetrySeconds(retryAfterMs),
    });
  });
}

/** Counts any other request that is no chat request: one of the key's rpm. */
export function createCountRequest(store: Pick<AdmissionStore, 'count'>): RequestHandler {
  return createCounter(
    (requestId, principal) => store.count(requestId, principal, true),
    (admission, principal) => toRefusal({ ...admission, verdict: 'rpm' }, principal, 'chat'),
  );
}
