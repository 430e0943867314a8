import type { KeyMode } from '../contracts/space.ts';
import type { TenantSettings } from '../contracts/tenant-fields.ts';

/** A principal has these under `limits` and `ceilings`, or not at all. */
type Grouped =
  'name' | 'rpm' | 'tpm' | 'dailyRequests' | 'chatRpm' | 'streamRpm' | 'tenantRpm' | 'tenantTpm' | 'maxInFlight';

/** A key and what its tenant allows it, resolved to final numbers. */
export interface Principal extends Omit<TenantSettings, Grouped> {
  keyId: string;
  tenantId: string;
  shard: number;
  mode: KeyMode;
  scopes: readonly string[];
  keyStatus: 'active' | 'revoked';
  /** Counts how often something that the key allowed was taken back; absent: never. */
  revision?: number;
  tenantStatus: 'active' | 'suspended';
  /** Milliseconds since the epoch. */
  expiresAt?: number;
  /** Per minute (`chatRpm`, `streamRpm`: per endpoint); `dailyRequests` per 24 hours, 0: unlimited. */
  limits: { rpm: number; tpm: number; dailyRequests: number; chatRpm: number; streamRpm: number };
  /** For all the tenant's keys together; null: none. */
  ceilings: { rpm: number | null; tpm: number | null; inFlight: number | null };
}

/** Names a key's flag in Redis, by its revision: so a flag stops only holders of an earlier one. */
export function flagOf({ keyId, revision = 0 }: Pick<Principal, 'keyId' | 'revision'>): string {
  return `${keyId}:${revision}`;
}
