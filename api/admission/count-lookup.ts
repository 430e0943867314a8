import type { RequestHandler } from 'express';

import { LOOKUPS_PER_MINUTE } from '../../shared/domain/limits/defaults.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { AdmissionStore } from '../../shared/infra/redis/admission-store.ts';
import { contextOf, principalOf } from '../middleware/request-context.ts';
import { setKeyHeaders } from './limit-headers.ts';
import { toRefusal } from './refusals.ts';

/** Counts a request that looks up, resumes or cancels another; it takes nothing of the key's rpm. */
export function createCountLookup(store: Pick<AdmissionStore, 'countLookup'>): RequestHandler {
  return async (_req, res, next) => {
    const context = contextOf(res);
    const principal = principalOf(res);
    context.counted = true;
    const admission = await store.countLookup(context.requestId, principal).catch((cause: unknown) => {
      throw new ServiceError('model_unavailable', 'The request cannot be looked up at the moment; try again shortly.', {
        cause,
        retryAfterSeconds: 1,
      });
    });
    setKeyHeaders(res, principal, admission);
    const { verdict } = admission;
    if (verdict === 'rpm') {
      throw new ServiceError(
        'rpm_exceeded',
        `The limit of ${LOOKUPS_PER_MINUTE} look-ups per minute and key is reached; wait as Retry-After says.`,
        { retryAfterSeconds: Math.max(1, Math.ceil(admission.retryAfterMs / 1000)) },
      );
    }
    if (verdict === 'revoked' || verdict === 'suspended') throw toRefusal({ ...admission, verdict }, principal, 'chat');
    next();
  };
}
