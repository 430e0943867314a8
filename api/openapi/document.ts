import { ENDPOINTS, endpointRule } from '../contract/endpoints.ts';
import type { EndpointName, PathParam } from '../contract/endpoints.ts';
import { SCOPES } from '../../shared/domain/keys/api-key.ts';
import { toErrorObject } from '../../shared/errors/error-body.ts';
import { describeOperation } from './describe-operation.ts';
import { describeErrorGroup, groupByStatus, nameOfGroup } from './error-responses.ts';
import type { ErrorGroup } from './error-responses.ts';
import { ERROR_MEANINGS, errorSchemas, errorsOf } from './errors.ts';
import { fromJoi } from './from-joi.ts';
import { REQUEST_HEADERS, RESPONSE_HEADERS, TOKEN_HEADERS, UNIFORM_HEADERS } from './headers.ts';
import { TAGS } from './operation.ts';
import { ANSWER_SCHEMAS, OPERATIONS } from './operations.ts';
import { PATH_PARAMETERS, templateOf, wireName } from './parameters.ts';
import type { JsonSchema } from './schema.ts';
import { describeKeylessPaths } from './service-paths.ts';
import { describeWebhookEvents } from './webhook-events.ts';

// Object.keys forgets that the names are those of the tables.
const ENDPOINT_NAMES = Object.keys(ENDPOINTS) as EndpointName[];

/** An OpenAPI 3.1 document, as far as its readers here look into it. */
export interface OpenApiDocument {
  openapi: string;
  info: object;
  servers: { url: string }[];
  tags: object[];
  paths: Record<string, object>;
  webhooks: Record<string, object>;
  components: Record<string, Record<string, object>>;
}

const DESCRIPTION = `Answers conversations with one of two model tiers, complete or as a stream, and remembers them by entity.

Every call needs an API key: \`Authorization: Bearer <API_KEY>\`. Every answer has \`X-Request-Id\` and the rate-limit headers; with a valid key also those of tokens. Every error has the same form, and its \`message\` says what to change.

A request over plain HTTP, where HTTPS is required, and one that is not valid HTTP are refused with \`invalid_request\` before any endpoint sees it: 400, 408 where it took too long to arrive, 413 or 431 where its head is too large. Paths without an endpoint are 404 \`not_found\`, other methods 405 \`method_not_allowed\` with the header \`Allow\`.`;

function describePaths(): Record<string, object> {
  const paths: Record<string, Record<string, object>> = {};
  for (const name of ENDPOINT_NAMES) {
    const rule = endpointRule(name);
    const item = (paths[templateOf(rule.path)] ??= {});
    item[rule.method.toLowerCase()] = describeOperation(name, rule, OPERATIONS[name]);
  }
  return { ...paths, ...describeKeylessPaths() };
}

function bodySchemas(): Record<string, JsonSchema> {
  const schemas: Record<string, JsonSchema> = {};
  for (const { body } of Object.values(OPERATIONS)) if (body !== undefined) schemas[body.name] = fromJoi(body.schema);
  return schemas;
}

function errorGroups(): ErrorGroup[] {
  return ENDPOINT_NAMES.flatMap((name) => groupByStatus(errorsOf(endpointRule(name), OPERATIONS[name].errors)));
}

function errorResponses(): Record<string, object> {
  return Object.fromEntries(errorGroups().map((group) => [nameOfGroup(group), describeErrorGroup(group)]));
}

function describeParameters(): Record<string, object> {
  const path = Object.entries(PATH_PARAMETERS).map(([name, parameter]) => [
    name,
    { name: wireName(name), in: 'path', required: true, ...parameter },
  ]);
  const headers = Object.entries(REQUEST_HEADERS).map(([name, header]) => [name, { name, in: 'header', ...header }]);
  return Object.fromEntries([...path, ...headers]) as Record<PathParam, object>;
}

function errorExamples(): Record<string, object> {
  const requestId = PATH_PARAMETERS.requestId.example;
  return Object.fromEntries(
    [...new Set(errorGroups().flatMap(({ codes }) => codes))].map((code) => {
      const message = ERROR_MEANINGS[code];
      return [code, { summary: message, value: { error: toErrorObject({ code, message }, requestId) } }];
    }),
  );
}

/** The document of the public API; the same every time. Throws where something cannot be told of (decision 0036). */
export function createDocument(): OpenApiDocument {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Parley',
      version: '1.0.0',
      summary: 'A multi-tenant chat-completion service.',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/platform/v1' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: describePaths(),
    webhooks: describeWebhookEvents(),
    components: {
      schemas: { ...errorSchemas, ...ANSWER_SCHEMAS, ...bodySchemas() },
      parameters: describeParameters(),
      headers: { ...UNIFORM_HEADERS, ...TOKEN_HEADERS, ...RESPONSE_HEADERS },
      responses: errorResponses(),
      examples: errorExamples(),
      securitySchemes: {
        ApiKey: {
          type: 'http',
          scheme: 'bearer',
          description: `An API key. Its scopes say what it may call: ${SCOPES.map((scope) => `\`${scope}\``).join(', ')}; \`*\` is everything.`,
        },
      },
    },
  };
}
