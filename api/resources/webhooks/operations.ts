import { listQuerySchema } from '../../../shared/contracts/list-page.ts';
import { WEBHOOK_EVENT_TYPES } from '../../../shared/contracts/webhook-events.ts';
import { exampleList } from '../../openapi/example-list.ts';
import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import {
  constant,
  deletedSchema,
  id,
  integer,
  listOf,
  nullable,
  object,
  oneOf,
  pageSchema,
  ref,
  text,
  time,
} from '../../openapi/schema.ts';
import type { JsonSchema } from '../../openapi/schema.ts';
import { newWebhookSchema, secretRotationSchema, webhookChangesSchema } from './schema.ts';

const fields = {
  id: id('whk'),
  object: constant('webhook'),
  created_at: time(),
  url: text(),
  events: listOf(ref('WebhookEventType')),
  description: text(),
  status: oneOf(['active', 'disabled']),
  disabled_reason: nullable(oneOf(['request', 'gone', 'failing'], '`request`: by you.')),
  failing_since: nullable(time('Since when no attempt has succeeded')),
  previous_secret_expires_at: nullable(time('Until when an earlier secret signs as well')),
};
const secret = { ...text('What signs the requests, shown this once.'), pattern: '^whsec_' };

export const webhookSchemas: Readonly<Record<string, JsonSchema>> = {
  WebhookEventType: oneOf(WEBHOOK_EVENT_TYPES),
  Webhook: object(fields),
  WebhookWithSecret: object({ ...fields, secret }, ['secret']),
  WebhookList: pageSchema(ref('Webhook')),
  DeletedWebhook: deletedSchema('webhook', id('whk')),
  WebhookDelivery: object({
    id: id('dlv'),
    object: constant('webhook.delivery'),
    created_at: time(),
    webhook_id: id('whk'),
    event_id: id('evt'),
    event_type: ref('WebhookEventType'),
    status: oneOf(['pending', 'succeeded', 'failed']),
    next_attempt_at: nullable(time('When it is attempted next')),
    attempts: listOf(
      object({
        created_at: time('When it was made'),
        duration_ms: integer(undefined, 0),
        status_code: nullable(integer('What the receiver answered.')),
        error: nullable(text('Why there was no answer, or it was no success.')),
      }),
      'The latest 50, oldest first.',
    ),
  }),
  WebhookDeliveryList: pageSchema(ref('WebhookDelivery')),
};

const WEBHOOK = {
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
const WITH_SECRET = { ...WEBHOOK, secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD8J5w1X0cB3E=' };
const DELIVERY = {
  id: PATH_PARAMETERS.deliveryId.example,
  object: 'webhook.delivery',
  created_at: 1_795_255_200,
  webhook_id: WEBHOOK.id,
  event_id: 'evt_8kL2mN4bV6cX1zQ3wE5rT7yU',
  event_type: 'ping',
  status: 'pending',
  next_attempt_at: 1_795_255_200,
  attempts: [],
};
const ATTEMPTED = {
  ...DELIVERY,
  status: 'succeeded',
  next_attempt_at: null,
  attempts: [{ created_at: 1_795_255_200, duration_ms: 87, status_code: 204, error: null }],
};
const accepted = json('It is attempted at once.', ref('WebhookDelivery'), ['Location', 'Idempotent-Replayed']);

/** What the document tells of `/webhooks`. */
export const webhooksOperations: OperationsOf<
  | 'createWebhook'
  | 'listWebhooks'
  | 'getWebhook'
  | 'updateWebhook'
  | 'deleteWebhook'
  | 'rotateWebhookSecret'
  | 'testWebhook'
  | 'listDeliveries'
  | 'getDelivery'
  | 'redeliver'
> = {
  createWebhook: {
    tag: 'Webhooks',
    summary: 'Create a webhook',
    description: 'At most 20 a tenant (409). A replayed answer leaves `secret` out.',
    headers: ['Idempotency-Key'],
    body: { name: 'NewWebhook', schema: newWebhookSchema },
    answers: { 201: json('The webhook, with its secret.', ref('WebhookWithSecret'), ['Idempotent-Replayed']) },
    examples: {
      on_call: {
        body: { url: WEBHOOK.url, events: WEBHOOK.events, description: WEBHOOK.description },
        status: 201,
        answer: WITH_SECRET,
      },
    },
  },
  listWebhooks: {
    tag: 'Webhooks',
    summary: 'List webhooks',
    query: [listQuerySchema],
    answers: { 200: json('A page of webhooks.', ref('WebhookList')) },
    examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(WEBHOOK) } },
  },
  getWebhook: {
    tag: 'Webhooks',
    summary: 'Look a webhook up',
    answers: { 200: json('The webhook.', ref('Webhook')) },
    examples: { one: { status: 200, answer: WEBHOOK } },
  },
  updateWebhook: {
    tag: 'Webhooks',
    summary: 'Change a webhook',
    description: 'Disabling it gives up what is waiting for it.',
    body: { name: 'WebhookChanges', schema: webhookChangesSchema },
    answers: { 200: json('The webhook after it.', ref('Webhook')) },
    examples: {
      disable: {
        summary: 'Send no more',
        body: { status: 'disabled' },
        status: 200,
        answer: { ...WEBHOOK, status: 'disabled', disabled_reason: 'request' },
      },
      events: { summary: 'Other events', body: { events: WEBHOOK.events }, status: 200, answer: WEBHOOK },
    },
  },
  deleteWebhook: {
    tag: 'Webhooks',
    summary: 'Delete a webhook',
    answers: { 200: json('It is deleted.', ref('DeletedWebhook')) },
    examples: { one: { status: 200, answer: { id: WEBHOOK.id, object: 'webhook', deleted: true } } },
  },
  rotateWebhookSecret: {
    tag: 'Webhooks',
    summary: 'Give a webhook another secret',
    description: 'Needs no body. Both secrets sign for `grace_seconds`.',
    headers: ['Idempotency-Key'],
    body: { name: 'WebhookSecretRotation', schema: secretRotationSchema },
    answers: { 200: json('The webhook, with its secret.', ref('WebhookWithSecret'), ['Idempotent-Replayed']) },
    examples: {
      an_hour: {
        summary: 'Both sign for an hour',
        body: { grace_seconds: 3_600 },
        status: 200,
        answer: { ...WITH_SECRET, previous_secret_expires_at: 1_795_258_800 },
      },
    },
  },
  testWebhook: {
    tag: 'Webhooks',
    summary: 'Send a ping',
    description: 'Whatever the webhook has subscribed to; a disabled one is 409.',
    headers: ['Idempotency-Key'],
    answers: { 202: accepted },
    examples: { ping: { status: 202, answer: DELIVERY } },
  },
  listDeliveries: {
    tag: 'Webhooks',
    summary: 'List deliveries of a webhook',
    description: 'Kept for 30 days.',
    query: [listQuerySchema],
    answers: { 200: json('A page of deliveries.', ref('WebhookDeliveryList')) },
    examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(ATTEMPTED) } },
  },
  getDelivery: {
    tag: 'Webhooks',
    summary: 'Look a delivery up',
    answers: { 200: json('The delivery.', ref('WebhookDelivery')) },
    examples: { one: { status: 200, answer: ATTEMPTED } },
  },
  redeliver: {
    tag: 'Webhooks',
    summary: 'Deliver an event again',
    description: 'Succeeded or not; one that is being attempted right now is 409.',
    headers: ['Idempotency-Key'],
    answers: { 202: accepted },
    examples: { again: { status: 202, answer: DELIVERY } },
  },
};
