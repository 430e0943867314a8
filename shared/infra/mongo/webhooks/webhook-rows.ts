import type { WebhookEventType } from '../../../contracts/webhook-events.ts';

/** A signing secret before the latest rotation. */
export interface PreviousSecret {
  encrypted: string;
  /** It signs until then. */
  expiresAt: number;
}

export interface WebhookRow {
  _id: string;
  tenantId: string;
  url: string;
  events: WebhookEventType[];
  description: string;
  status: 'active' | 'disabled';
  /** `request`: by the tenant. Absent while it is active. */
  disabledReason?: 'request' | 'gone' | 'failing';
  /** AES-256-GCM, see shared/infra/mongo/credentials.ts. */
  encryptedSecret: string;
  previousSecrets?: PreviousSecret[];
  /** The run under an `Idempotency-Key` that rotated the secret last. */
  rotatedUnder?: string;
  /** Since when no attempt has succeeded, and how many have failed since; absent after a success. */
  failingSince?: number;
  failures?: number;
  /** The latest attempt succeeded but took long. */
  slow?: boolean;
  createdAt: number;
}

/** What receivers are sent; `_id` is made of tenant, type and cause, so a cause has one event. */
export interface WebhookEventRow {
  _id: string;
  tenantId: string;
  type: WebhookEventType;
  /** The body as it is signed and sent, the same with every attempt. */
  bodyJson: string;
  /** The entity that the event is about, so that its deletion finds it. */
  entityId?: string;
  createdAt: number;
  /** MongoDB deletes it then. */
  expiresAt: Date;
}

export interface DeliveryAttempt {
  at: number;
  durationMs: number;
  status?: number;
  /** A sentence of ours; nothing of what the receiver replied. */
  error?: string;
}

/** One event for one webhook. */
export interface WebhookDeliveryRow {
  _id: string;
  tenantId: string;
  webhookId: string;
  eventId: string;
  type: WebhookEventType;
  status: 'pending' | 'succeeded' | 'failed';
  /** The latest ones. */
  attempts: DeliveryAttempt[];
  /** Failed attempts since it was made or asked for again. */
  failed: number;
  /** Present while it is pending. During an attempt: when another worker may take it. */
  nextAttemptAt?: number;
  /** Rises with every attempt: only the latest may write what came of it. */
  claim: number;
  /** Present during an attempt. */
  claimedUntil?: number;
  createdAt: number;
  /** MongoDB deletes it then. */
  expiresAt: Date;
}
