import { TIERS } from '../../shared/contracts/chat-request.ts';
import type { FinishReason } from '../../shared/contracts/events.ts';
import type { ChatRoute } from '../../shared/contracts/jobs.ts';
import type { WebhookEventData, WebhookEventType } from '../../shared/contracts/webhook-events.ts';
import {
  id,
  integer,
  listOf,
  nullable,
  number,
  object,
  oneOf,
  oneOfType,
  text,
  time,
} from '../contract/json-schema.ts';
import type { JsonSchema } from '../contract/json-schema.ts';
import { batchStatusSchema } from '../resources/batches/batches-resource.ts';
import { usageSchema } from '../chat/completion-schemas.ts';

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
  endpoint: oneOfType<ChatRoute>({ chat: true, 'chat.stream': true, batch: true, embeddings: true, moderations: true }),
  entity_id: nullable(text()),
};
const ended = {
  ...chat,
  finish_reason: oneOfType<FinishReason>({
    stop: true,
    length: true,
    tool_calls: true,
    content_filter: true,
    cancelled: true,
    error: true,
  }),
  usage: usageSchema,
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

export const WEBHOOK_EVENTS: EventTable = {
  'chat.completed': {
    when: 'An answer was booked, a shortened one included.',
    data: object({ ...ended, credits: number('What was charged.') }),
    example: { ...CHAT, finish_reason: 'stop', usage: USAGE, credits: 23 },
  },
  'chat.failed': {
    when: 'A request failed after it was accepted.',
    data: object({ ...ended, error_code: nullable(text()) }),
    example: { ...CHAT, finish_reason: 'error', usage: USAGE, error_code: 'model_unavailable' },
  },
  'batch.completed': {
    when: 'All requests of a batch ended.',
    data: object({
      batch_id: id('batch'),
      status: batchStatusSchema,
      total: integer(),
      succeeded: integer(),
      failed: integer(),
    }),
    example: { batch_id: 'batch_1aB2cD3eF4gH5iJ6kL7mN8oP', status: 'completed', total: 120, succeeded: 118, failed: 2 },
  },
  'credits.purchased': {
    when: 'A payment was booked.',
    data: object({ purchase_id: id('pur'), credits: number() }),
    example: { purchase_id: 'pur_3sD5fG7hJ9kL1qW2eR4tY6uI', credits: 250_000 },
  },
  'credits.low': {
    when: 'A tenth or less is left of the balance after the latest grant or purchase.',
    data: object({ balance: number(), balance_after_last_top_up: number() }),
    example: { balance: 24_977, balance_after_last_top_up: 250_000 },
  },
  'credits.depleted': { when: 'No credits are left.', data: object({ balance: number() }), example: { balance: 0 } },
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
    when: 'A key was created, by the API or an administrator.',
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
    data: object({ key_id: id('key'), name: text(), expires_at: time('Time of expiry'), days_left: { enum: [1, 7] } }),
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
    when: 'An export of data is ready for download.',
    data: object(compliance),
    example: { id: 'exp_1aB2cD3eF4gH5iJ6kL7mN8oP', scope: 'tenant', entity_id: null },
  },
  'compliance.deletion.completed': {
    when: 'A deletion of data ended.',
    data: object({ ...compliance, entity_hash: nullable(text('Stands for the entity, whose id is deleted.')) }),
    example: {
      id: 'del_1aB2cD3eF4gH5iJ6kL7mN8oP',
      scope: 'entity',
      entity_id: null,
      entity_hash: 'erased_dK3s7fQ2pL9xVb1nT5rW8yU4iQ2pL',
    },
  },
  'webhook.disabled': {
    when: 'The service disabled a webhook; sent to your other webhooks.',
    data: object({ webhook_id: id('whk'), url: text(), reason: oneOf(['gone', 'failing']) }),
    example: { webhook_id: 'whk_2bV6cX8zM4nQ1wE5rT9yU7iO', url: 'https://example.com/hooks/parley', reason: 'failing' },
  },
  ping: {
    when: '`POST /webhooks/{webhook_id}/test` was called.',
    data: object({ webhook_id: id('whk') }),
    example: { webhook_id: 'whk_2bV6cX8zM4nQ1wE5rT9yU7iO' },
  },
};
