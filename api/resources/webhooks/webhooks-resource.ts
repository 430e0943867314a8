import { WEBHOOK_EVENT_TYPES } from '../../../shared/contracts/webhook-events.ts';
import { ATTEMPTS_KEPT } from '../../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookDeliveryRow } from '../../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookRow } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import {
  constant,
  deletedSchema,
  id,
  integer,
  listOf,
  named,
  nullable,
  object,
  oneOf,
  pageSchema,
  text,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const eventTypeSchema = named('WebhookEventType', oneOf(WEBHOOK_EVENT_TYPES));

const webhookFields = {
  id: id('whk'),
  object: constant('webhook'),
  created_at: time(),
  url: text(),
  events: listOf(eventTypeSchema),
  description: text(),
  status: oneOf(['active', 'disabled']),
  disabled_reason: nullable(oneOf(['request', 'gone', 'failing'], '`request`: by you.')),
  failing_since: nullable(time('Time since which no attempt has succeeded')),
  previous_secret_expires_at: nullable(time('Until when an earlier secret signs as well')),
};
const secret = { ...text('The secret that signs the requests, shown only once.'), pattern: '^whsec_' };

export const webhookSchema = named('Webhook', object(webhookFields));
export const webhookWithSecretSchema = named('WebhookWithSecret', object({ ...webhookFields, secret }, ['secret']));
export const webhookListSchema = named('WebhookList', pageSchema(webhookSchema));
export const deletedWebhookSchema = named('DeletedWebhook', deletedSchema('webhook', id('whk')));

export function toWebhookResource(row: WebhookRow, now: number) {
  const ends = (row.previousSecrets ?? []).map(({ expiresAt }) => expiresAt).filter((end) => end > now);
  return {
    id: row._id,
    object: 'webhook',
    created_at: toSeconds(row.createdAt),
    url: row.url,
    events: row.events,
    description: row.description,
    status: row.status,
    disabled_reason: row.disabledReason ?? null,
    failing_since: toSecondsOrNull(row.failingSince),
    previous_secret_expires_at: ends.length === 0 ? null : toSeconds(Math.max(...ends)),
  } satisfies FieldsOf<typeof webhookFields>;
}

const deliveryFields = {
  id: id('dlv'),
  object: constant('webhook.delivery'),
  created_at: time(),
  webhook_id: id('whk'),
  event_id: id('evt'),
  event_type: eventTypeSchema,
  status: oneOf(['pending', 'succeeded', 'failed']),
  next_attempt_at: nullable(time('Time of the next attempt')),
  attempts: listOf(
    object({
      created_at: time('Time of the attempt'),
      duration_ms: integer(undefined, 0),
      status_code: nullable(integer("The receiver's answer.")),
      error: nullable(text('Why there was no answer, or why the answer was no success.')),
    }),
    `The latest ${ATTEMPTS_KEPT}, oldest first.`,
  ),
};

export const deliverySchema = named('WebhookDelivery', object(deliveryFields));
export const deliveryListSchema = named('WebhookDeliveryList', pageSchema(deliverySchema));

/** One event for one webhook, with its latest attempts, oldest first. */
export function toDeliveryResource(row: WebhookDeliveryRow) {
  return {
    id: row._id,
    object: 'webhook.delivery',
    created_at: toSeconds(row.createdAt),
    webhook_id: row.webhookId,
    event_id: row.eventId,
    event_type: row.type,
    status: row.status,
    next_attempt_at: toSecondsOrNull(row.nextAttemptAt),
    attempts: row.attempts.map(({ at, durationMs, status, error }) => ({
      created_at: toSeconds(at),
      duration_ms: durationMs,
      status_code: status ?? null,
      error: error ?? null,
    })),
  } satisfies FieldsOf<typeof deliveryFields>;
}

export const WEBHOOK_EXAMPLE: ReturnType<typeof toWebhookResource> = {
  id: PATH_PARAMETERS.webhookId.example,
  object: 'webhook',
  created_at: 1_795_255_200,
  url: 'https://example.com/hooks/parley',
  events: ['chat.failed', 'credits.low'],
  description: 'To the on-call channel',
  status: 'active',
  disabled_reason: null,
  failing_since: null,
  previous_secret_expires_at: null,
};
export const WEBHOOK_WITH_SECRET_EXAMPLE = {
  ...WEBHOOK_EXAMPLE,
  secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD8J5w1X0cB3E=',
};

export const DELIVERY_EXAMPLE: ReturnType<typeof toDeliveryResource> = {
  id: PATH_PARAMETERS.deliveryId.example,
  object: 'webhook.delivery',
  created_at: 1_795_255_200,
  webhook_id: WEBHOOK_EXAMPLE.id,
  event_id: 'evt_8kL2mN4bV6cX1zQ3wE5rT7yU',
  event_type: 'ping',
  status: 'pending',
  next_attempt_at: 1_795_255_200,
  attempts: [],
};
export const ATTEMPTED_DELIVERY_EXAMPLE: ReturnType<typeof toDeliveryResource> = {
  ...DELIVERY_EXAMPLE,
  status: 'succeeded',
  next_attempt_at: null,
  attempts: [{ created_at: 1_795_255_200, duration_ms: 87, status_code: 204, error: null }],
};
