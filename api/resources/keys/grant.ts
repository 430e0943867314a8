import type { KeyMode } from '../../../shared/contracts/jobs.ts';

/** What an API key allows, resolved to final numbers. */
export interface Grant {
  mode: KeyMode;
  scopes: readonly string[];
  /** Milliseconds since the epoch; undefined: for ever. */
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

/** The first part in which `wanted` goes beyond `owned`; undefined: it is within. */
export function excessOf(owned: Grant, wanted: Grant): GrantPart | undefined {
  if (owned.mode === 'test' && wanted.mode === 'live') return 'mode';
  // All of today's scopes by name are less than `*`, which takes in those to come.
  const isWithin = owned.scopes.includes('*') || wanted.scopes.every((scope) => owned.scopes.includes(scope));
  if (!isWithin) return 'scopes';
  if ((wanted.expiresAt ?? Infinity) > (owned.expiresAt ?? Infinity)) return 'expires_at';
  if (size(wanted.rpm) > size(owned.rpm)) return 'rpm';
  if (size(wanted.tpm) > size(owned.tpm)) return 'tpm';
  if (size(wanted.dailyRequests) > size(owned.dailyRequests)) return 'daily_requests';
  return undefined;
}
