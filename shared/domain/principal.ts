import type { Tier } from '../contracts/chat-request.ts';
import type { KeyMode, ModerationSettings } from '../contracts/space.ts';

/** Who calls: a key and what its tenant allows it, resolved to final numbers. */
export interface Principal {
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
  /** The weight of the tenant's turns in the interactive queue. */
  weight: number;
  /** Tokens per calendar month (UTC); null: no budget. */
  monthlyTokenBudget: number | null;
  /** Tokens per day (UTC) of all the tenant's test keys together. */
  testDailyTokens: number;
  defaultModel: Tier;
  subject?: string;
  grade?: string;
  onDisconnect: 'cancel' | 'finish';
  /** How long answers are kept after their end; absent: as the service's settings say; 0: nothing is kept. */
  retentionSeconds?: number;
  moderation?: ModerationSettings;
}

/**
 * The name under which Redis has the flag of a key. It changes with the revision, so that a flag stops who has an earlier
 * one and nobody else.
 */
export function flagOf({ keyId, revision = 0 }: Pick<Principal, 'keyId' | 'revision'>): string {
  return `${keyId}:${revision}`;
}
