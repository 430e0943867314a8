import { excessOf } from './grant.ts';
import type { Grant, GrantPart } from './grant.ts';
import type { Principal } from '../../../shared/domain/keys/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { KeySettings } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { KeyRow } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';

const SENTENCES: Record<GrantPart, string> = {
  mode: 'A test key cannot make or widen a live key; send `mode` test or use a live key.',
  scopes: 'A key cannot grant scopes that it does not have; send `scopes` within those of the key you call with.',
  expires_at:
    'A key cannot grant a longer life than its own; send `expires_at` no later than that of the key you call with.',
  rpm: 'A key cannot grant more than its own limits; send `rpm` no higher than that of the key you call with.',
  tpm: 'A key cannot grant more than its own limits; send `tpm` no higher than that of the key you call with.',
  daily_requests:
    'A key cannot grant more than its own limits; send `daily_requests` no higher than that of the key you call with (0 means unlimited).',
};

/** What a key with these settings allows: its own limits, else its tenant's. */
export function grantOf(
  key: Pick<KeyRow | KeySettings, 'mode' | 'scopes' | 'expiresAt' | 'rpm' | 'tpm' | 'dailyRequests'>,
  tenant: Pick<TenantRow, 'rpm' | 'tpm' | 'dailyRequests'>,
): Grant {
  return {
    mode: key.mode,
    scopes: key.scopes,
    expiresAt: key.expiresAt,
    rpm: key.rpm ?? tenant.rpm,
    tpm: key.tpm ?? tenant.tpm,
    dailyRequests: key.dailyRequests ?? tenant.dailyRequests,
  };
}

/**
 * Throws `endpoint_not_allowed` where `wanted` goes beyond what the caller's key allows
 * (docs/spec/contract.md section 6).
 */
export function assertGranted({ mode, scopes, expiresAt, limits }: Principal, wanted: Grant): void {
  const { rpm, tpm, dailyRequests } = limits;
  const excess = excessOf({ mode, scopes, expiresAt, rpm, tpm, dailyRequests }, wanted);
  if (excess !== undefined) throw new ServiceError('endpoint_not_allowed', SENTENCES[excess], { param: excess });
}
