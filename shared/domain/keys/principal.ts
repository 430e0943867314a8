import type { Tier } from '../../contracts/chat-request.ts';
import type { KeyMode } from '../../contracts/space.ts';
import type { ModerationSettings } from '../../contracts/moderation-settings.ts';

/** Who calls: a key and what its tenant allows it, resolved to final numbers. */
export interface Principal {
  keyId: string;
  tenantId: string;
  shard: number;
  mode: KeyMode;
  scopes: readonly string[];
  keyStatus: 'active' | 'revoked';
  tenantStatus: 'active' | 'suspended';
  /** Milliseconds since the epoch. */
  expiresAt?: number;
  /** Of the key, and of the endpoints for this key (`chatRpm`, `streamRpm`), a minute; `dailyRequests` in 24 hours, 0: any. */
  limits: { rpm: number; tpm: number; dailyRequests: number; chatRpm: number; streamRpm: number };
  /** Of all the tenant's keys together; null: none. */
  ceilings: { rpm: number | null; tpm: number | null; inFlight: number | null };
  /** Of the tenant's turns in the interactive queue. */
  weight: number;
  /** Tokens a calendar month (UTC); null: none. */
  monthlyTokenBudget: number | null;
  /** Tokens a day (UTC) of all the tenant's test keys together. */
  testDailyTokens: number;
  defaultModel: Tier;
  subject?: string;
  grade?: string;
  onDisconnect: 'cancel' | 'finish';
  /** How long answers stay after their end; absent: the settings of the service; 0: nothing is kept. */
  retentionSeconds?: number;
  moderation?: ModerationSettings;
}
