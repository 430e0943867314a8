import type { KeyMode } from '../../../shared/contracts/space.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { KeyRow, KeySettings } from '../../../shared/mongo/tenants/key-repository.ts';
import type { TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';

/** The grant of an API key, resolved to final numbers. */
export interface Grant {
  mode: KeyMode;
  scopes: readonly string[];
  /** Milliseconds since the epoch; undefined: the key does not expire. */
  expiresAt?: number | undefined;
  rpm: number;
  tpm: number;
  /** 0 means unlimited, so it compares as infinite. */
  dailyRequests: number;
}

export type GrantPart = 'mode' | 'scopes' | 'expires_at' | 'rpm' | 'tpm' | 'daily_requests';

function size(limit: number): number {
  return limit === 0 ? Infinity : limit;
}

/** The first part in which `wanted` goes beyond `owned`; undefined: it does not. */
export function excessOf(owned: Grant, wanted: Grant): GrantPart | undefined {
  if (owned.mode === 'test' && wanted.mode === 'live') return 'mode';
  // `*` also covers scopes added later, so it is more than all of today's scopes by name.
  const isWithin = owned.scopes.includes('*') || wanted.scopes.every((scope) => owned.scopes.includes(scope));
  if (!isWithin) return 'scopes';
  if ((wanted.expiresAt ?? Infinity) > (owned.expiresAt ?? Infinity)) return 'expires_at';
  if (size(wanted.rpm) > size(owned.rpm)) return 'rpm';
  if (size(wanted.tpm) > size(owned.tpm)) return 'tpm';
  if (size(wanted.dailyRequests) > size(owned.dailyRequests)) return 'daily_requests';
  return undefined;
}

/** The grant of a key with these settings: its own limits, or else its tenant's. */
export function grantOf(
  key: Pick<KeyRow | KeySettings, 'mode' | 'scopes' | 'expiresAt' | 'rpm' | 'tpm' | 'dailyRequests'>,
  tenant: TenantRow,
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

const MESSAGES: Record<GrantPart, string> = {
  mode: 'A test key cannot make or widen a live key; send `mode` test or use a live key.',
  scopes: 'A key cannot grant scopes that it does not have; send `scopes` within those of the key you call with.',
  expires_at:
    'A key cannot grant a longer life than its own; send `expires_at` no later than that of the key you call with.',
  rpm: 'A key cannot grant more than its own limits; send `rpm` no higher than that of the key you call with.',
  tpm: 'A key cannot grant more than its own limits; send `tpm` no higher than that of the key you call with.',
  daily_requests:
    'A key cannot grant more than its own limits; send `daily_requests` no higher than that of the key you call with (0 means unlimited).',
};

/** Throws `endpoint_not_allowed` if a test key manages a live key (docs/spec.md#test-keys). */
export function assertMayManage({ mode }: Principal, key: KeyRow): void {
  if (mode === 'live' || key.mode === 'test') return;
  throw new ServiceError(
    'endpoint_not_allowed',
    'A test key cannot change, rotate or revoke a live key; call with a live key.',
    { param: 'mode' },
  );
}

/** Throws `endpoint_not_allowed` if `wanted` exceeds the caller's key (docs/spec.md#keys). */
export function assertGranted({ mode, scopes, expiresAt, limits }: Principal, wanted: Grant): void {
  const { rpm, tpm, dailyRequests } = limits;
  const excess = excessOf({ mode, scopes, expiresAt, rpm, tpm, dailyRequests }, wanted);
  if (excess !== undefined) throw new ServiceError('endpoint_not_allowed', MESSAGES[excess], { param: excess });
}
