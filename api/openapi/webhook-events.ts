import { TIERS } from '../../shared/contracts/chat-request.ts';
import type { FinishReason } from '../../shared/contracts/events.ts';
import type { Endpoint } from '../../shared/contracts/jobs.ts';
import { WEBHOOK_EVENT_TYPES } from '../../shared/contracts/webhook-events.ts';
import type { WebhookEventData, WebhookEventType } from '../../shared/contracts/webhook-events.ts';
import {
  constant,
  id,
  integer,
  listOf,
  nullable,
  number,
  object,
  oneOf,
  oneOfType,
  ref,
  text,
  time,
} from './schema.ts';
import type { JsonSchema } from './schema.ts';

/** An event's `data`: when it is sent, its schema, and an example that TypeScript checks against its type. */
type EventTable = {
  readonly [Type in WebhookEventType]: { when: string; data: JsonSchema; example: WebhookEventData[Type] };
};

const mode = oneOf(['live', 'test']);
const chat = {
  request_id: id('req'),
  key_id: id('key'),
  mode,
  model: oneOf(TIERS),
  endpoint: oneOfType<Endpoint>({ chat: true, 'chat.stream': true, batch: true }),
  entity_id: nullable(text()),
};
const ended = {
  ...chat,
  finish_reason: oneOfType<FinishReason>({
    stop: true,
    length: true,
    content_filter: true,
    cancelled: true,
    error: true,
  }),
  usage: ref('Usage'),
};
const budget = { month: text('`2026-11`, in UTC.'), limit: integer('Tokens.'), used: integer('Tokens.') };
const compliance = { id: text(), scope: oneOf(['tenant', 'entity']), entity_id: nullable(text()) };

const CHAT = {
  request_id: 'req_4fK2mZ8sQ1xY7bN3vC6tR9wE',
  key_id: 'key_9dJ3nR5wT7yU1pL8sA2fG4hK',
  mode: 'live',
  model: 'mobius',
  endpoint: 'chat',
  entity_id: null,
} as const;
const USAGE = { prompt_tokens: 14, completion_tokens: 9, total_tokens: 23 };

const EVENTS: EventTable = {
  'chat.completed': {
    when: 'An answer has been booked, a shortened one included.',
    data: object({ ...ended, credits: number('What was charged.') }),
    example: { ...CHAT, finish_reason: 'stop', usage: USAGE, credits: 23 },
  },
  'chat.failed': {
    when: 'A request has ended with an error after it was accepted.',
    data: object({ ...ended, error_code: nullable(text()) }),
    example: { ...CHAT, finish_reason: 'error', usage: USAGE, error_code: 'model_unavailable' },
  },
  'batch.completed': {
    when: 'All lines of a batch have ended.',
    data: object({
      batch_id: id('batch'),
      status: ref('BatchStatus'),
      total: integer(),
      succeeded: integer(),
      failed: integer(),
    }),
    example: { batch_id: 'batch_1aB2cD3eF4gH5iJ6kL7mN8oP', status: 'completed', total: 120, succeeded: 118, failed: 2 },
  },
  'credits.purchased': {
    when: 'A payment has been booked.',
    data: object({ purchase_id: id('pur'), credits: number() }),
    example: { purchase_id: 'pur_3sD5fG7hJ9kL1qW2eR4tY6uI', credits: 250_000 },
  },
  'credits.low': {
    when: 'A tenth or less is left of the balance after the last grant or purchase.',
    data: object({ balance: number(), balance_after_last_top_up: number() }),
    example: { balance: 24_977, balance_after_last_top_up: 250_000 },
  },
  'credits.depleted': {
    when: 'No credits are left.',
    data: object({ balance: number() }),
    example: { balance: 0 },
  },
  'budget.threshold_reached': {
    when: 'A part of the monthly token budget is used.',
    data: object({ ...budget, threshold_percent: integer() }),
    example: { month: '2026-11', limit: 1_000_000, used: 800_120, threshold_percent: 80 },
  },
  'budget.exceeded': {
    when: 'All of the monthly token budget is used.',
    data: object(budget),
    example: { month: '2026-11', limit: 1_000_000, used: 1_000_004 },
  },
  'key.created': {
    when: 'A key was made, by the API or an administrator.',
    data: object({ key_id: id('key'), mode, scopes: listOf(text()) }),
    example: { key_id: CHAT.key_id, mode: 'live', scopes: ['chat'] },
  },
  'key.revoked': {
    when: 'A key was revoked, by the API or an administrator.',
    data: object({ key_id: id('key') }),
    example: { key_id: CHAT.key_id },
  },
  'key.expiring': {
    when: 'A key expires within seven days, and again within one.',
    data: object({ key_id: id('key'), name: text(), expires_at: time('When'), days_left: { enum: [1, 7] } }),
    example: { key_id: CHAT.key_id, name: 'Homework helper', expires_at: 1_797_847_200, days_left: 7 },
  },
  'moderation.flagged': {
    when: 'Messages (`side: input`) or an answer (`output`) were flagged.',
    data: object({ ...chat, side: oneOf(['input', 'output']), categories: listOf(text()) }),
    example: { ...CHAT, side: 'input', categories: ['harassment'] },
  },
  'entity.deleted': {
    when: 'An entity was deleted.',
    data: object({ entity_id: text() }),
    example: { entity_id: 'pupil-7' },
  },
  'compliance.export.completed': {
    when: 'An export of data can be downloaded.',
    data: object(compliance),
    example: { id: 'exp_1aB2cD3eF4gH5iJ6kL7mN8oP', scope: 'tenant', entity_id: null },
  },
  'compliance.deletion.completed': {
    when: 'A deletion of data has ended.',
    data: object({ ...compliance, entity_hash: nullable(text('What stands for the entity, whose id is deleted.')) }),
    example: {
      id: 'del_1aB2cD3eF4gH5iJ6kL7mN8oP',
      scope: 'entity',
      entity_id: null,
      entity_hash: 'erased_dK3s7fQ2pL9xVb1nT5rW8yU4iQ2pL',
    },
  },
  'webhook.disabled': {
    when: 'The service has given a receiver up; sent to your other webhooks.',
    data: object({ webhook_id: id('whk'), url: text(), reason: oneOf(['gone', 'failing']) }),
    example: {
      webhook_id: 'whk_2bV6cX8zM4nQ1wE5rT9yU7iO',
      url: 'https://example.com/hooks/parley',
      reason: 'failing',
    },
  },
  ping: {
    when: '`POST /webhooks/{webhook_id}/test` was called.',
    data: object({ webhook_id: id('whk') }),
    example: { webhook_id: 'whk_2bV6cX8zM4nQ1wE5rT9yU7iO' },
  },
};

const SIGNED_HEADERS: Readonly<Record<string, string>> = {
  'webhook-id': "The event's id: one that came before was sent again.",
  'webhook-timestamp': 'When it was signed, in Unix seconds.',
  'webhook-signature': 'One or more of `v1,<base64>`, parted by spaces: HMAC-SHA256 over id, timestamp and body.',
};

function bodySchema(type: WebhookEventType): JsonSchema {
  return object({
    id: id('evt'),
    type: constant(type),
    timestamp: { type: 'string', format: 'date-time', description: 'When it happened.' },
    data: EVENTS[type].data,
  });
}

function exampleOf(type: WebhookEventType) {
  return {
    id: 'evt_8kL2mN4bV6cX1zQ3wE5rT7yU',
    type,
    timestamp: '2026-11-21T10:00:00.000Z',
    data: EVENTS[type].example,
  };
}

/** The `webhooks` of the document: what a tenant's receiver is sent (Standard Webhooks 1.0). */
export function describeWebhookEvents() {
  return Object.fromEntries(
    WEBHOOK_EVENT_TYPES.map((type) => [
      type,
      {
        post: {
          operationId: `on:${type}`,
          tags: ['Webhooks'],
          summary: EVENTS[type].when,
          parameters: Object.entries(SIGNED_HEADERS).map(([name, description]) => ({
            ...{ name, in: 'header', required: true, description },
            schema: { type: 'string' },
          })),
          requestBody: {
            required: true,
            content: {
              'application/json': { schema: bodySchema(type), examples: { event: { value: exampleOf(type) } } },
            },
          },
          responses: {
            '2XX': { description: 'Received; answered within 15 seconds. Anything else is attempted again.' },
            '410': { description: 'The webhook is disabled.' },
          },
        },
      },
    ]),
  );
}
