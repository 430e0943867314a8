import { WEBHOOK_EVENT_TYPES } from '../../shared/contracts/webhook-events.ts';
import type { WebhookEventType } from '../../shared/contracts/webhook-events.ts';
import { constant, id, object } from '../contract/json-schema.ts';
import type { JsonSchema } from '../contract/json-schema.ts';
import { WEBHOOK_EVENTS } from './webhook-event-examples.ts';

const SIGNED_HEADERS: Readonly<Record<string, string>> = {
  'webhook-id': "The event's id; the same id means that the event is sent again.",
  'webhook-timestamp': 'Time of the signature, in Unix seconds.',
  'webhook-signature': 'One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body.',
};

function bodySchema(type: WebhookEventType): JsonSchema {
  return object({
    id: id('evt'),
    type: constant(type),
    timestamp: { type: 'string', format: 'date-time', description: 'Time of the event.' },
    data: WEBHOOK_EVENTS[type].data,
  });
}

function exampleOf(type: WebhookEventType) {
  return {
    id: 'evt_8kL2mN4bV6cX1zQ3wE5rT7yU',
    type,
    timestamp: '2026-11-21T10:00:00.000Z',
    data: WEBHOOK_EVENTS[type].example,
  };
}

/** The document's `webhooks`: what a tenant's receiver gets (Standard Webhooks 1.0). */
export function describeWebhookEvents() {
  return Object.fromEntries(
    WEBHOOK_EVENT_TYPES.map((type) => [
      type,
      {
        post: {
          operationId: `on:${type}`,
          tags: ['Webhooks'],
          summary: WEBHOOK_EVENTS[type].when,
          parameters: Object.entries(SIGNED_HEADERS).map(([name, description]) => ({
            name,
            in: 'header',
            required: true,
            description,
            schema: { type: 'string' },
          })),
          requestBody: {
            required: true,
            content: {
              'application/json': { schema: bodySchema(type), examples: { event: { value: exampleOf(type) } } },
            },
          },
          responses: {
            '2XX': { description: 'Received, within 15 seconds. Any other answer is attempted again.' },
            '410': { description: 'The webhook is disabled.' },
          },
        },
      },
    ]),
  );
}
