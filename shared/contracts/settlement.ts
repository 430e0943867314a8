import type { FinishReason } from './events.ts';
import type { Tier } from './chat-request.ts';
import type { Endpoint, KeyMode } from './jobs.ts';

/** What a finished request owes the book: one outbox entry, at most one ledger entry. */
export interface SettlementRecord {
  requestId: string;
  tenantId: string;
  keyId: string;
  mode: KeyMode;
  tier: Tier;
  endpoint: Endpoint;
  entityId?: string;
  provider: string;
  model: string;
  promptTokens: number;
  completionTokens: number;
  estimated: boolean;
  /** Micro-credits; 0 for test keys (interface.md section 5, rule 3). */
  costMicro: number;
  finishReason: FinishReason;
  /** Milliseconds since the epoch. */
  acceptedAt: number;
  finishedAt: number;
}
