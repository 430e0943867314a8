import { Schema } from 'mongoose';
import type { Connection, Model } from 'mongoose';

import { count, number, options, required, text } from '../schema-parts.ts';
import type {
  DeliveryAttempt,
  PreviousSecret,
  WebhookDeliveryRow,
  WebhookEventRow,
  WebhookRow,
} from './webhook-rows.ts';

const previousSecret = new Schema<PreviousSecret>({ encrypted: required, expiresAt: count }, { _id: false });
const webhookSchema = new Schema<WebhookRow>(
  {
    _id: required,
    tenantId: required,
    url: required,
    events: [String],
    description: text,
    status: required,
    disabledReason: text,
    encryptedSecret: required,
    rotatedUnder: text,
    previousSecrets: { type: [previousSecret], default: undefined },
    failingSince: number,
    failures: number,
    slow: { type: Boolean },
    createdAt: count,
  },
  options,
)
  .index({ tenantId: 1, createdAt: -1 })
  .index({ events: 1 });

const webhookEventSchema = new Schema<WebhookEventRow>(
  {
    _id: required,
    tenantId: required,
    type: required,
    bodyJson: required,
    entityId: text,
    createdAt: count,
    expiresAt: { type: Date, required: true },
  },
  options,
)
  .index({ tenantId: 1, entityId: 1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

const deliveryAttempt = new Schema<DeliveryAttempt>(
  { at: count, durationMs: count, status: number, error: text },
  { _id: false },
);
const webhookDeliverySchema = new Schema<WebhookDeliveryRow>(
  {
    _id: required,
    tenantId: required,
    webhookId: required,
    eventId: required,
    type: required,
    status: required,
    attempts: [deliveryAttempt],
    failed: count,
    nextAttemptAt: number,
    claim: count,
    claimedUntil: number,
    createdAt: count,
    expiresAt: { type: Date, required: true },
  },
  options,
)
  .index({ tenantId: 1, webhookId: 1, createdAt: -1 })
  .index({ tenantId: 1, webhookId: 1, status: 1, nextAttemptAt: 1 })
  .index({ status: 1, nextAttemptAt: 1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

export interface WebhookModels {
  webhooks: Model<WebhookRow>;
  webhookEvents: Model<WebhookEventRow>;
  webhookDeliveries: Model<WebhookDeliveryRow>;
}

export function createWebhookModels(connection: Connection): WebhookModels {
  return {
    webhooks: connection.model<WebhookRow>('Webhook', webhookSchema, 'webhooks'),
    webhookEvents: connection.model<WebhookEventRow>('WebhookEvent', webhookEventSchema, 'webhook_events'),
    webhookDeliveries: connection.model<WebhookDeliveryRow>(
      'WebhookDelivery',
      webhookDeliverySchema,
      'webhook_deliveries',
    ),
  };
}
