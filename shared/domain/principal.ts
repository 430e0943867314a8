import type { KeyMode } from '../contracts/space.ts';
import type { TenantSettings } from '../contracts/tenant-fields.ts';

/** Settings that a principal has under `limits` and `ceilings`, or not at all. */
type Grouped =
  'name' | 'rpm' | 'tpm' | 'dailyRequests' | 'chatRpm' | 'streamRpm' | 'tenantRpm' | 'tenantTpm' | 'maxInFlight';

/** The caller: a key and what its tenant allows it, resolved to final numbers. */
export interface Principal extends Omit<TenantSettings, Grouped> {
  keyId: string;
  tenantId: string;
  shard: number;
  mode: KeyMode;
  scopes: readonly string[];
  keyStatus: 'active' | 'revoked';
  /** How often something that the key allowed was taken back; absent: never. */
  revision?: number;
  tenantStatus: 'active' | 'suspended';
  /** Milliseconds since the epoch. */
  expiresAt?: number;
  /** The key's, per minute (`chatRpm`, `streamRpm`: per endpoint); `dailyRequests` per 24 hours, 0: unlimited. */
  limits: { rpm: number; tpm: number; dailyRequests: number; chatRpm: number; streamRpm: number };
  /** Of all the tenant's keys together; null: none. */
  ceilings: { rpm: number | null; tpm: number | null; inFlight: number | null };
}

/**
 * The name under which Redis has the flag of a key. It changes with the revision, so that a flag stops who has an earlier
 * one and nobody else.
 */
export function flagOf({ keyId, revision = 0 }: Pick<Principal, 'keyId' | 'revision'>): string {
  return `${keyId}:${revision}`;
}
