import { isIdempotent } from '../contract/endpoint.ts';
import type { Endpoint } from '../contract/endpoint.ts';
import { RESPONSE_HEADERS, TOKEN_HEADERS, UNIFORM_HEADERS } from '../contract/headers.ts';
import { ENDPOINTS } from '../endpoints.ts';
import { SCOPES } from '../../shared/domain/api-key.ts';
import type { Api } from './describe-operation.ts';
import type { OpenApiDocument } from './document.ts';
import { describeApi } from './document.ts';
import { describeWebhookEvents } from './describe-webhook-events.ts';
import { errorsOfEndpoint } from './error-responses.ts';
import { describeKeylessPaths } from './keyless-paths.ts';

const DESCRIPTION = `Answers conversations with one of two model tiers, complete or as a stream, and remembers them by entity.

To chat, paste an API key under "Authorize", open \`POST /chat\` below and execute its example. \`POST /chat/stream\` streams the answer, and \`entity_id\` has the conversation remembered. OpenAI's clients work unchanged: their base URL is \`/platform/v1\` of this host, their models are \`mobius\` and \`oloid\`.

Every call needs an API key: \`Authorization: Bearer <API_KEY>\`. Every answer has \`X-Request-Id\` and the rate-limit headers; with a valid key also those of tokens. Every error has the same form, and its \`message\` says what to change.

A request over plain HTTP, where HTTPS is required, and one that is not valid HTTP are refused with \`invalid_request\` before any endpoint sees it: 400, 408 where it took too long to arrive, 413 or 431 where its head is too large. Paths without an endpoint are 404 \`not_found\`, other methods 405 \`method_not_allowed\` with the header \`Allow\`.`;

const SCOPE_NAMES = SCOPES.map((scope) => `\`${scope}\``).join(', ');

/** The headers of every answer to a valid key; a call without one gets only the limit of its address. */
const KEY_HEADERS = [...Object.keys(UNIFORM_HEADERS), ...Object.keys(TOKEN_HEADERS)];

/** Describes the public API, always in the same way. */
export function createDocument(): OpenApiDocument {
  const api: Api<Endpoint> = {
    title: 'Parley',
    summary: 'A multi-tenant chat-completion service.',
    description: DESCRIPTION,
    server: '/platform/v1',
    tags: {
      Chat: 'Complete and streamed answers, and their requests.',
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
