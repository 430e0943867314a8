import type { BatchStatus } from './batches.ts';
import type { Tier } from './chat-request.ts';
import type { FinishReason } from './events.ts';
import type { ChatRoute } from './jobs.ts';
import type { KeyMode } from './space.ts';

interface ChatEventData {
  request_id: string;
  key_id: string;
  mode: KeyMode;
  model: Tier;
  endpoint: ChatRoute;
  entity_id: string | null;
}

interface EndedChatData extends ChatEventData {
  finish_reason: FinishReason;
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

interface BalanceData {
  /** Credits. */
  balance: number;
}

interface BudgetData {
  /** `2026-11`, in UTC. */
  month: string;
  /** Tokens. */
  limit: number;
  used: number;
}

interface ComplianceJobData {
  id: string;
  scope: 'tenant' | 'entity';
  entity_id: string | null;
}

/** The `data` of each event (docs/spec.md#webhooks). */
export interface WebhookEventData {
  'chat.completed': EndedChatData & { credits: number };
  /** Null if the worker that knew it died before it could report it. */
  'chat.failed': EndedChatData & { error_code: string | null };
  /** Sent however the batch ended, as `status` says. */
  'batch.completed': { batch_id: string; status: BatchStatus; total: number; succeeded: number; failed: number };
  'credits.purchased': { purchase_id: string; credits: number };
  /** At most a tenth of the balance after the last grant or purchase is left. */
  'credits.low': BalanceData & { balance_after_last_top_up: number };
  'credits.depleted': BalanceData;
  'budget.threshold_reached': BudgetData & { threshold_percent: number };
  'budget.exceeded': BudgetData;
  'key.created': { key_id: string; mode: KeyMode; scopes: string[] };
  'key.revoked': { key_id: string };
  /** `expires_at` is in Unix seconds. */
  'key.expiring': { key_id: string; name: string; expires_at: number; days_left: 1 | 7 };
  'moderation.flagged': ChatEventData & { side: 'input' | 'output'; categories: string[] };
  'entity.deleted': { entity_id: string };
  'compliance.export.completed': ComplianceJobData;
  /** `entity_hash` is a pseudonym. */
  'compliance.deletion.completed': ComplianceJobData & { entity_hash: string | null };
  'webhook.disabled': { webhook_id: string; url: string; reason: 'gone' | 'failing' };
  /** Sent by `POST /webhooks/{id}/test` alone, whatever the webhook subscribes to. */
  ping: { webhook_id: string };
}

export type WebhookEventType = keyof WebhookEventData;

const TYPES: Record<WebhookEventType, true> = {
  'chat.completed': true,
  'chat.failed': true,
  'batch.completed': true,
  'credits.purchased': true,
  'credits.low': true,
  'credits.depleted': true,
  'budget.threshold_reached': true,
  'budget.exceeded': true,
  'key.created': true,
  'key.revoked': true,
  'key.expiring': true,
  'moderation.flagged': true,
  'entity.deleted': true,
  'compliance.export.completed': true,
  'compliance.deletion.completed': true,
  'webhook.disabled': true,
  ping: true,
};

// Object.keys does not keep the type of the record's names.
export const WEBHOOK_EVENT_TYPES = Object.keys(TYPES) as WebhookEventType[];

export function isWebhookEventType(text: string): text is WebhookEventType {
  return Object.hasOwn(TYPES, text);
}
