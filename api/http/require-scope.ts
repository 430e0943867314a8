import type { RequestHandler, Response } from 'express';

import { allowsScope } from '../../shared/domain/keys/api-key.ts';
import type { Scope } from '../../shared/domain/keys/api-key.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { principalOf } from './request-context.ts';

/** Throws `endpoint_not_allowed` for a key that has none of the scopes. */
export function assertScope(res: Response, ...accepted: readonly Scope[]): void {
  const { scopes } = principalOf(res);
  if (accepted.some((scope) => allowsScope(scopes, scope))) return;
  const names = accepted.map((scope) => `\`${scope}\``).join(', ');
  throw new ServiceError(
    'endpoint_not_allowed',
    `This API key has no scope for this endpoint; it needs ${names} or \`*\`.`,
  );
}

/** Refuses keys that have none of the scopes, then suspended tenants: the order of docs/spec/contract.md section 3. */
export function requireScope(...accepted: readonly Scope[]): RequestHandler {
  return (_req, res, next) => {
    assertScope(res, ...accepted);
    if (principalOf(res).tenantStatus === 'suspended') {
      throw new ServiceError('account_suspended', 'This account is suspended; contact the administrator.');
    }
    next();
  };
}
