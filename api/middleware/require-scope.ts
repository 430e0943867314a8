import type { RequestHandler } from 'express';

import { allowsScope } from '../../shared/domain/keys/api-key.ts';
import type { Scope } from '../../shared/domain/keys/api-key.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { principalOf } from './request-context.ts';

/** Refuses keys that have none of the scopes, then suspended tenants: the order of contract.md section 3. */
export function requireScope(...accepted: readonly Scope[]): RequestHandler {
  return (_req, res, next) => {
    const { scopes, tenantStatus } = principalOf(res);
    if (!accepted.some((scope) => allowsScope(scopes, scope))) {
      throw new ServiceError(
        'endpoint_not_allowed',
        `This API key has no scope for this endpoint; it needs ${accepted.map((scope) => `\`${scope}\``).join(', ')} or \`*\`.`,
      );
    }
    if (tenantStatus === 'suspended') {
      throw new ServiceError('account_suspended', 'This account is suspended; contact the administrator.');
    }
    next();
  };
}
