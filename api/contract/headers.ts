import { constant, integer, text } from './json-schema.ts';
import type { JsonSchema } from './json-schema.ts';

export interface Header {
  description: string;
  schema: JsonSchema;
}

/** `beside` adds what remaining and reset say where another limit refuses the call. */
function rateLimit(what: 'Requests' | 'Tokens', limit: string, beside = { remaining: '', reset: '' }) {
  return {
    [`X-RateLimit-Limit-${what}`]: { description: limit, schema: integer(undefined, 0) },
    [`X-RateLimit-Remaining-${what}`]: {
      description: `What remains of it in the current window${beside.remaining}.`,
      schema: integer(undefined, 0),
    },
    [`X-RateLimit-Reset-${what}`]: {
      description: `Seconds until the window is empty; 0 when it is${beside.reset}.`,
      schema: integer(undefined, 0),
    },
  };
}

/** On every answer, whatever its status (docs/spec.md#headers). */
export const UNIFORM_HEADERS: Readonly<Record<string, Header>> = {
  'X-Request-Id': {
    description: 'The id of the request; the same as `error.request_id`.',
    schema: { type: 'string', pattern: '^req_[0-9A-Za-z]{24}$' },
  },
  ...rateLimit(
    'Requests',
    "The key's requests per minute; without a valid key the failed authentications per minute of the address.",
    {
      remaining: '; 0 where another limit of requests refuses the call',
      reset: '. Where another limit refuses the call, until that one admits it',
    },
  ),
};

/** On every answer to a valid key. */
export const TOKEN_HEADERS: Readonly<Record<string, Header>> = rateLimit('Tokens', "The key's tokens per minute.");

export const RESPONSE_HEADERS = {
  'Retry-After': {
    description: 'Seconds after which the same call is admitted if nothing else changes.',
    schema: integer(undefined, 1),
  },
  'WWW-Authenticate': {
    description: 'What the endpoint asks for (RFC 9110): a Bearer credential in `Authorization`.',
    schema: constant('Bearer'),
  },
  'X-Should-Retry': {
    description:
      'Do not send the same again without being asked: it was cancelled, its key stands for a stream that broke off, or it passes in more than two minutes only.',
    schema: constant('false'),
  },
  Location: { description: 'Where the accepted resource can be retrieved.', schema: text() },
  'Preference-Applied': { description: 'The caller does not wait for the answer.', schema: constant('respond-async') },
  'Idempotent-Replayed': {
    description: 'The answer of an earlier call with the same `Idempotency-Key`, or of an earlier try of this call.',
    schema: constant('true'),
  },
  'X-Ignored-Fields': {
    description: 'Unknown fields of the body, which are ignored; percent-encoded and separated by commas.',
    schema: text(),
  },
  'Content-Disposition': { description: 'The name of the file.', schema: text() },
  'Repr-Digest': { description: 'The SHA-256 of the file (RFC 9530).', schema: text() },
  ETag: { description: 'Changes with the content.', schema: text() },
} as const satisfies Record<string, Header>;
export type ResponseHeaderName = keyof typeof RESPONSE_HEADERS;

export const REQUEST_HEADERS = {
  'Idempotency-Key': {
    description:
      'Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  Prefer: {
    description:
      '`respond-async`: the answer is 202 at once; the completion is retrieved or streamed later (RFC 7240).',
    schema: text(),
  },
  'X-Stainless-Retry-Count': {
    description:
      "Sent by OpenAI's clients: which try of a call this is. Above 0, it joins the request of an earlier try that nobody reads; an `Idempotency-Key` wins.",
    schema: { type: 'string', pattern: '^\\d{1,3}$' },
  },
  'Last-Event-ID': {
    description:
      'The number of the last event received: the stream goes on behind it. It wins over `starting_after`; a POST reads it where its `Idempotency-Key` joins an earlier call.',
    schema: { type: 'string', pattern: '^\\d{1,15}$' },
  },
} as const satisfies Record<string, Header>;
export type RequestHeaderName = keyof typeof REQUEST_HEADERS;

export function headersOf(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
