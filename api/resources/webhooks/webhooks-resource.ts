import { WEBHOOK_EVENT_TYPES } from '../../../shared/contracts/webhook-events.ts';
import { ATTEMPTS_KEPT } from '../../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookDeliveryRow } from '../../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookRow } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import {
  deletedSchema,
  field,
  id,
  integer,
  kind,
  listOf,
  named,
  nullable,
  object,
  oneOf,
  resource,
  schemasOf,
  text,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const eventTypeSchema = named('WebhookEventType', oneOf(WEBHOOK_EVENT_TYPES));

export const webhookResource = resource<[row: WebhookRow, now: number]>('Webhook', {
  id: field(id('whk'), PATH_PARAMETERS.webhookId.example, (row) => row._id),
  object: kind('webhook'),
  created_at: field(time(), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  url: field(text(), 'https://example.com/hooks/parley', (row) => row.url),
  events: field(listOf(eventTypeSchema), ['chat.failed', 'credits.low'], (row) => row.events),
  description: field(text(), 'To the on-call channel', (row) => row.description),
  status: field(oneOf(['active', 'disabled']), 'active', (row) => row.status),
  disabled_reason: field(
    nullable(oneOf(['request', 'gone', 'failing'], '`request`: by you.')),
    null,
    (row) => row.disabledReason,
  ),
  failing_since: field(nullable(time('Time since which no attempt has succeeded')), null, (row) =>
    toSecondsOrNull(row.failingSince),
  ),
  previous_secret_expires_at: field(
    nullable(time('Until when an earlier secret signs as well')),
    null,
    ({ previousSecrets = [] }, now) => {
      const ends = previousSecrets.map(({ expiresAt }) => expiresAt).filter((end) => end > now);
      return ends.length === 0 ? null : toSeconds(Math.max(...ends));
    },
  ),
});

/** With its secret, which only the answers to its creation and rotation have. */
export const webhookWithSecretSchema = named(
  'WebhookWithSecret',
  object(
    {
      ...schemasOf(webhookResource.fields),
      secret: { ...text('The secret that signs the requests, shown only once.'), pattern: '^whsec_' },
    },
    ['secret'],
  ),
);
export const WEBHOOK_WITH_SECRET_EXAMPLE = {
  ...webhookResource.example,
  secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD8J5w1X0cB3E=',
};
export const deletedWebhookSchema = named('DeletedWebhook', deletedSchema('webhook', id('whk')));

/** One event for one webhook, with its latest attempts, oldest first. */
export const deliveryResource = resource<[row: WebhookDeliveryRow]>('WebhookDelivery', {
  id: field(id('dlv'), PATH_PARAMETERS.deliveryId.example, (row) => row._id),
  object: kind('webhook.delivery'),
  created_at: field(time(), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  webhook_id: field(id('whk'), PATH_PARAMETERS.webhookId.example, (row) => row.webhookId),
  event_id: field(id('evt'), 'evt_8kL2mN4bV6cX1zQ3wE5rT7yU', (row) => row.eventId),
  event_type: field(eventTypeSchema, 'ping', (row) => row.type),
  status: field(oneOf(['pending', 'succeeded', 'failed']), 'pending', (row) => row.status),
  next_attempt_at: field(nullable(time('Time of the next attempt')), 1_795_255_200, (row) =>
    toSecondsOrNull(row.nextAttemptAt),
  ),
  attempts: field(
    listOf(
      object({
        created_at: time('Time of the attempt'),
        duration_ms: integer(undefined, 0),
        status_code: nullable(integer("The receiver's answer.")),
        error: nullable(text('Why there was no answer, or why the answer was no success.')),
      }),
      `The latest ${ATTEMPTS_KEPT}, oldest first.`,
    ),
    [],
    (row) =>
      row.attempts.map(({ at, durationMs, status, error }) => ({
        created_at: toSeconds(at),
        duration_ms: durationMs,
        status_code: status ?? null,
        error: error ?? null,
      })),
  ),
});
export const ATTEMPTED_DELIVERY_EXAMPLE = {
  ...deliveryResource.example,
  status: 'succeeded',
  next_attempt_at: null,
  attempts: [{ created_at: 1_795_255_200, duration_ms: 87, status_code: 204, error: null }],
};
