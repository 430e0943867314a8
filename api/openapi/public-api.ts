import { isIdempotent } from '../contract/endpoint.ts';
import type { Endpoint } from '../contract/endpoint.ts';
import { RESPONSE_HEADERS, TOKEN_HEADERS, UNIFORM_HEADERS, headersOf } from '../contract/headers.ts';
import type { ResponseHeaderName } from '../contract/headers.ts';
import { constant, id, object, text } from '../contract/json-schema.ts';
import type { JsonSchema } from '../contract/json-schema.ts';
import { ENDPOINTS } from '../endpoints.ts';
import { SCOPES } from '../../shared/domain/api-key.ts';
import type { Api } from './describe-operation.ts';
import { describeApi } from './document.ts';
import type { OpenApiDocument } from './document.ts';
import { errorsOfEndpoint } from './error-responses.ts';
import { WEBHOOK_EVENTS } from './webhook-event-examples.ts';
import { WEBHOOK_EVENT_TYPES } from '../../shared/contracts/webhook-events.ts';
import type { WebhookEventType } from '../../shared/contracts/webhook-events.ts';

/** Served at the root of the host, not below the API's path. */
const AT_ROOT = [{ url: '/', description: 'The root of the host.' }];

interface KeylessAnswer {
  description: string;
  schema: JsonSchema;
  example: unknown;
  headers?: readonly ResponseHeaderName[];
}

interface KeylessOperation {
  operationId: string;
  summary: string;
  answers: Readonly<Record<number, KeylessAnswer>>;
}

const checks: JsonSchema = {
  type: 'object',
  description: 'What keeps the ingress from serving, by name; empty where nothing does.',
  additionalProperties: text(),
};

/** Paths that need no key and are not endpoints; test/api/http/openapi.test.ts compares them with the app. */
const KEYLESS: Readonly<Record<string, KeylessOperation>> = {
  '/health/live': {
    operationId: 'getLiveness',
    summary: 'Check liveness',
    answers: {
      200: {
        description: 'The process is running.',
        schema: object({ status: constant('ok'), version: text(), commit: text() }),
        example: { status: 'ok', version: '0.1.0', commit: '801118b4' },
      },
    },
  },
  '/health/ready': {
    operationId: 'getReadiness',
    summary: 'Check readiness',
    answers: {
      200: {
        description: 'The ingress takes requests. A store may be away.',
        schema: object({ status: constant('ok'), checks }),
        example: { status: 'ok', checks: {} },
      },
      503: {
        description: 'The ingress is starting or stopping.',
        schema: object({ status: constant('unavailable'), checks }),
        example: { status: 'unavailable', checks: { process: 'it is starting' } },
      },
    },
  },
  '/openapi.json': {
    operationId: 'getDocument',
    summary: 'Retrieve this document',
    answers: {
      200: {
        description: 'The same as at `/platform/v1/openapi.json`.',
        schema: { ...object({ openapi: text() }), additionalProperties: true },
        example: { openapi: '3.1.0', info: {}, paths: {} },
        headers: ['ETag'],
      },
    },
  },
};

function describeAnswer({ description, schema, example, headers = [] }: KeylessAnswer) {
  return {
    description,
    headers: headersOf([...Object.keys(UNIFORM_HEADERS), ...headers]),
    content: { 'application/json': { schema, examples: { state: { value: example } } } },
  };
}

function describeKeylessPaths() {
  return Object.fromEntries(
    Object.entries(KEYLESS).map(([path, { operationId, summary, answers }]) => [
      path,
      {
        servers: AT_ROOT,
        get: {
          operationId,
          summary,
          tags: ['Service'],
          security: [],
          responses: Object.fromEntries(
            Object.entries(answers).map(([status, answer]) => [status, describeAnswer(answer)]),
          ),
        },
      },
    ]),
  );
}

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
function describeWebhookEvents() {
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

const DESCRIPTION = `Answers conversations with one of two model tiers, complete or as a stream, and remembers them by entity.

To chat, paste an API key under "Authorize", open \`POST /chat\` below and execute its example. \`POST /chat/stream\` streams the answer, and \`entity_id\` has the conversation remembered. OpenAI's clients work unchanged: their base URL is \`/platform/v1\` of this host, their models are \`mobius\` and \`oloid\`.

Every call needs an API key: \`Authorization: Bearer <API_KEY>\`. Every answer has \`X-Request-Id\` and the rate-limit headers; with a valid key also those of tokens. Every error has the same form, and its \`message\` says what to change.

A request over plain HTTP, where HTTPS is required, and one that is not valid HTTP are refused with \`invalid_request\` before any endpoint sees it: 400, 408 where it took too long to arrive, 413 or 431 where its head is too large. Paths without an endpoint are 404 \`not_found\`, other methods 405 \`method_not_allowed\` with the header \`Allow\`.`;

const SCOPE_NAMES = SCOPES.map((scope) => `\`${scope}\``).join(', ');

/** The headers of every answer to a valid key; a call without one gets only the limit of its address. */
const KEY_HEADERS = [...Object.keys(UNIFORM_HEADERS), ...Object.keys(TOKEN_HEADERS)];

export function createDocument(): OpenApiDocument {
  const api: Api<Endpoint> = {
    title: 'Parley',
    summary: 'A multi-tenant chat-completion service.',
    description: DESCRIPTION,
    server: '/platform/v1',
    tags: {
      Chat: 'Complete and streamed answers, and their requests.',
      Embeddings: 'Vectors of texts.',
      Moderation: 'What moderation finds in texts.',
      Models: 'The model tiers.',
      Batches: 'Many requests at once, answered within 24 hours.',
      Keys: 'API keys of the tenant.',
      Entities: 'The other side of a conversation, and its history.',
      Usage: 'Usage by time, key, model and entity.',
      Billing: 'Credits: balance, packages, purchases, transactions.',
      Webhooks: 'Addresses to which events are posted.',
      Compliance: 'Audit log, export and deletion of data.',
      Service: 'The service itself; no key is needed.',
    },
    endpoints: ENDPOINTS,
    headers: { ...UNIFORM_HEADERS, ...TOKEN_HEADERS, ...RESPONSE_HEADERS },
    headersOfStatus: (status) => (status === 401 ? Object.keys(UNIFORM_HEADERS) : KEY_HEADERS),
    errorsOf: errorsOfEndpoint,
    isIdempotent,
    securityOf: ({ scopes }) =>
      (scopes === 'any' ? [[]] : scopes.map((scope) => [scope])).map((ApiKey) => ({ ApiKey })),
    securitySchemes: {
      ApiKey: {
        type: 'http',
        scheme: 'bearer',
        description: `An API key. Its scopes say what it may call: ${SCOPE_NAMES}; \`*\` is everything.`,
      },
    },
    otherPaths: describeKeylessPaths(),
    webhooks: describeWebhookEvents(),
  };
  return describeApi(api);
}
