import { CHAT_LIMITS } from '../contracts/chat-request.ts';

/** Every error a caller can see, one row each (docs/spec.md#codes). `meaning`, for the API document, says when. */
export const ERRORS = {
  missing_api_key: { status: 401, type: 'authentication_error', meaning: 'No API key was sent.' },
  invalid_api_key: {
    status: 401,
    type: 'authentication_error',
    meaning: 'The API key is unknown, malformed or revoked.',
  },
  expired_api_key: { status: 401, type: 'authentication_error', meaning: 'The API key has expired.' },
  endpoint_not_allowed: {
    status: 403,
    type: 'permission_error',
    meaning: "The key's scopes do not cover this endpoint, or the call would grant more than the key has.",
  },
  account_suspended: { status: 403, type: 'permission_error', meaning: 'An administrator has suspended the account.' },
  insufficient_credits: {
    status: 402,
    type: 'billing_error',
    meaning: 'The credits are used up, or held by requests in progress (`reason: "in_flight"`).',
  },
  budget_exceeded: {
    status: 402,
    type: 'billing_error',
    meaning: 'The monthly token budget is used up, or held by requests in progress.',
  },
  rpm_exceeded: {
    status: 429,
    type: 'rate_limit_error',
    meaning: 'A limit of requests is reached; the message names it.',
  },
  tpm_exceeded: {
    status: 429,
    type: 'rate_limit_error',
    meaning: 'A limit of tokens is reached; the message names it.',
  },
  invalid_request: {
    status: 400,
    type: 'invalid_request_error',
    meaning: 'The request is malformed, or a field is missing or invalid; `param` names the field.',
  },
  message_too_long: {
    status: 400,
    type: 'invalid_request_error',
    meaning: `A message has more than ${CHAT_LIMITS.contentMax.toLocaleString('en')} characters.`,
  },
  too_many_messages: {
    status: 400,
    type: 'invalid_request_error',
    meaning: `\`messages\` has more than ${CHAT_LIMITS.messagesMax} items.`,
  },
  context_length_exceeded: {
    status: 400,
    type: 'invalid_request_error',
    meaning: "The messages are too long for the model's context window.",
  },
  content_policy_violation: { status: 400, type: 'invalid_request_error', meaning: 'Moderation flagged the messages.' },
  model_unavailable: {
    status: 503,
    type: 'overloaded_error',
    meaning: 'No provider or store can serve the request at the moment.',
  },
  timeout: { status: 504, type: 'timeout_error', meaning: 'The request reached its time limit.' },
  model_not_found: {
    status: 404,
    type: 'not_found_error',
    meaning: 'There is no model with this name; the message names those that there are.',
  },
  not_found: { status: 404, type: 'not_found_error', meaning: 'No such resource in this tenant.' },
  gone: { status: 410, type: 'invalid_request_error', meaning: 'The resource has expired.' },
  method_not_allowed: {
    status: 405,
    type: 'not_found_error',
    meaning: 'The path does not support this method; the header `Allow` lists those that it supports.',
  },
  payload_too_large: { status: 413, type: 'invalid_request_error', meaning: 'The body is too large.' },
  unsupported_media_type: {
    status: 415,
    type: 'invalid_request_error',
    meaning: 'The endpoint does not accept this content type.',
  },
  conflict: { status: 409, type: 'invalid_request_error', meaning: 'The state of the resource does not allow this.' },
  idempotency_mismatch: {
    status: 422,
    type: 'invalid_request_error',
    meaning: 'The `Idempotency-Key` was used with a different body.',
  },
  internal_error: { status: 500, type: 'api_error', meaning: 'The service failed.' },
} as const satisfies Record<string, { status: number; type: string; meaning: string }>;

export type ErrorCode = keyof typeof ERRORS;

export function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(ERRORS, value);
}
