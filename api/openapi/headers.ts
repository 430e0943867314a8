import { constant, integer, text } from './schema.ts';
import type { JsonSchema } from './schema.ts';

interface Header {
  description: string;
  schema: JsonSchema;
}

function rateLimit(what: 'Requests' | 'Tokens', limit: string) {
  return {
    [`X-RateLimit-Limit-${what}`]: { description: limit, schema: integer(undefined, 0) },
    [`X-RateLimit-Remaining-${what}`]: {
      description: 'What is left of it in the current window.',
      schema: integer(undefined, 0),
    },
    [`X-RateLimit-Reset-${what}`]: {
      description: 'Seconds until the window is empty; 0 when it is.',
      schema: integer(undefined, 0),
    },
  };
}

/** On every answer, whatever it is (docs/spec/contract.md section 2). */
export const UNIFORM_HEADERS: Readonly<Record<string, Header>> = {
  'X-Request-Id': {
    description: 'Names the request; the same as `error.request_id`.',
    schema: { type: 'string', pattern: '^req_[0-9A-Za-z]{24}$' },
  },
  ...rateLimit(
    'Requests',
    "The key's requests per minute; without a valid key the failed authentications per minute of the address.",
  ),
};

/** On every answer to a valid key. */
export const TOKEN_HEADERS: Readonly<Record<string, Header>> = rateLimit('Tokens', "The key's tokens per minute.");

/** On some answers. */
export const RESPONSE_HEADERS = {
  'Retry-After': {
    description: 'Seconds after which the same call is admitted if nothing else changes.',
    schema: integer(undefined, 1),
  },
  Location: { description: 'Where to look for what was accepted.', schema: text() },
  'Preference-Applied': { description: 'The answer is not waited for.', schema: constant('respond-async') },
  'Idempotent-Replayed': {
    description: 'An earlier call with the same `Idempotency-Key` made what this answer tells of.',
    schema: constant('true'),
  },
  'X-Ignored-Fields': {
    description: 'Fields of the body that nobody reads, percent-encoded and parted by commas.',
    schema: text(),
  },
  'Content-Disposition': { description: 'The name of the file.', schema: text() },
  'Repr-Digest': { description: 'The SHA-256 of the file (RFC 9530).', schema: text() },
  ETag: { description: 'Changes with the content.', schema: text() },
} as const satisfies Record<string, Header>;
export type ResponseHeaderName = keyof typeof RESPONSE_HEADERS;

/** Headers of requests that mean something to an endpoint. */
export const REQUEST_HEADERS = {
  'Idempotency-Key': {
    description:
      'Makes the call safe to repeat for 24 hours: the same body again is answered with what the first call made, another body with 422. Per tenant, mode and family of paths.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  Prefer: {
    description: '`respond-async`: the answer is 202 at once, and is looked up or streamed later (RFC 7240).',
    schema: text(),
  },
  'Last-Event-ID': {
    description: 'The number of the last event that the client has; not together with `starting_after`.',
    schema: { type: 'string', pattern: '^\\d{1,15}$' },
  },
} as const satisfies Record<string, Header>;
export type RequestHeaderName = keyof typeof REQUEST_HEADERS;

/** What every answer to a valid key has. */
export const KEY_HEADERS: readonly string[] = [...Object.keys(UNIFORM_HEADERS), ...Object.keys(TOKEN_HEADERS)];

/** Headers of an answer, as the document names them. */
export function headersOf(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
