import type { EndpointRule } from '../contract/endpoints.ts';
import { ERRORS } from '../../shared/errors/codes.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import { id, object, oneOf, ref, text } from './schema.ts';
import type { JsonSchema } from './schema.ts';

/** When a caller sees it. */
export const ERROR_MEANINGS: Readonly<Record<ErrorCode, string>> = {
  missing_api_key: 'No API key was sent.',
  invalid_api_key: 'The API key is unknown, malformed or revoked.',
  expired_api_key: 'The API key is past its expiry.',
  endpoint_not_allowed: "The key's scopes do not cover this, or it would grant more than it has.",
  account_suspended: 'An administrator has suspended the account.',
  insufficient_credits: 'The credits are used up, or held by requests that still run (`reason: "in_flight"`).',
  budget_exceeded: 'The monthly token budget is used up, or held by requests that still run.',
  rpm_exceeded: 'A limit of requests is reached; the message names it.',
  tpm_exceeded: 'A limit of tokens is reached; the message names it.',
  invalid_request: 'Something in the request is missing or wrong; `param` names it where there is one.',
  message_too_long: 'A message has more than 16,000 characters.',
  too_many_messages: '`messages` has more than 100 items.',
  content_policy_violation: 'Moderation has flagged the messages.',
  model_unavailable: 'No provider or store can serve this at the moment.',
  timeout: 'The request has reached its time limit.',
  not_found: 'There is no such thing, or it is not yours.',
  gone: 'It was there and is no longer kept.',
  method_not_allowed: 'The path answers other methods only; the header `Allow` names them.',
  payload_too_large: 'The body is too large.',
  unsupported_media_type: 'The body is not in a content type that the endpoint reads.',
  conflict: 'The state of what it is about does not allow this.',
  idempotency_mismatch: 'The `Idempotency-Key` was used with another body.',
  internal_error: 'A fault of the service.',
};

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** docs/spec/interface.md section 2.4. */
export const errorSchemas: Readonly<Record<string, JsonSchema>> = {
  ErrorCode: oneOf(
    CODES,
    CODES.map((code) => `- \`${code}\` (${ERRORS[code].status}): ${ERROR_MEANINGS[code]}`).join('\n'),
  ),
  ErrorObject: object(
    {
      code: ref('ErrorCode'),
      message: text('What to change, for people.'),
      type: oneOf([...new Set(Object.values(ERRORS).map(({ type }) => type))]),
      request_id: id('req', 'The same as the header `X-Request-Id`.'),
      param: text('The field or parameter at fault: `messages[3].content`.'),
      reason: text('A detail for programs: `in_flight`.'),
    },
    ['param', 'reason'],
  ),
  Error: object({ error: ref('ErrorObject') }),
};

const ALWAYS: readonly ErrorCode[] = [
  'invalid_request',
  'missing_api_key',
  'invalid_api_key',
  'expired_api_key',
  'account_suspended',
  'rpm_exceeded',
  'internal_error',
  'model_unavailable',
];

const OF_CHAT: readonly ErrorCode[] = [
  ...(['message_too_long', 'too_many_messages', 'content_policy_violation'] as const),
  ...(['insufficient_credits', 'budget_exceeded', 'tpm_exceeded'] as const),
  ...(['conflict', 'gone', 'idempotency_mismatch', 'timeout'] as const),
];

/** An `Idempotency-Key` has an effect. */
function isIdempotent({ method, counts }: EndpointRule): boolean {
  return method === 'POST' && counts !== 'lookup';
}

/** The errors that an endpoint can answer: those of its guards, and its own. */
export function errorsOf(rule: EndpointRule, own: readonly ErrorCode[] = []): ErrorCode[] {
  const { scopes, path, body, counts } = rule;
  const codes = new Set<ErrorCode>([
    ...ALWAYS,
    ...(scopes === 'any' ? [] : (['endpoint_not_allowed'] as const)),
    ...(path.includes(':') ? (['not_found'] as const) : []),
    ...(body === 'json' || body === 'optional-json' || body === 'batch' || body === 'own'
      ? (['payload_too_large', 'unsupported_media_type'] as const)
      : []),
    ...(isIdempotent(rule) ? (['conflict', 'idempotency_mismatch'] as const) : []),
    ...(counts === 'admission' && body === 'chat' ? OF_CHAT : []),
    ...own,
  ]);
  return CODES.filter((code) => codes.has(code));
}
