/**
 * Every error a caller can see, one row each. Sources: docs/spec/interface.md section 7, docs/spec/contract.md section 2.
 * `retry` is for the attempt loop: 'never' ends the request, 'next' lets it try again or take the next target.
 */
export const ERRORS = {
  missing_api_key: { status: 401, type: 'authentication_error', retry: 'never' },
  invalid_api_key: { status: 401, type: 'authentication_error', retry: 'never' },
  expired_api_key: { status: 401, type: 'authentication_error', retry: 'never' },
  endpoint_not_allowed: { status: 403, type: 'permission_error', retry: 'never' },
  account_suspended: { status: 403, type: 'permission_error', retry: 'never' },
  insufficient_credits: { status: 402, type: 'billing_error', retry: 'never' },
  budget_exceeded: { status: 402, type: 'billing_error', retry: 'never' },
  rpm_exceeded: { status: 429, type: 'rate_limit_error', retry: 'never' },
  tpm_exceeded: { status: 429, type: 'rate_limit_error', retry: 'never' },
  invalid_request: { status: 400, type: 'invalid_request_error', retry: 'never' },
  message_too_long: { status: 400, type: 'invalid_request_error', retry: 'never' },
  too_many_messages: { status: 400, type: 'invalid_request_error', retry: 'never' },
  content_policy_violation: { status: 400, type: 'invalid_request_error', retry: 'never' },
  model_unavailable: { status: 503, type: 'overloaded_error', retry: 'next' },
  timeout: { status: 504, type: 'timeout_error', retry: 'next' },
  not_found: { status: 404, type: 'not_found_error', retry: 'never' },
  gone: { status: 410, type: 'invalid_request_error', retry: 'never' },
  method_not_allowed: { status: 405, type: 'not_found_error', retry: 'never' },
  payload_too_large: { status: 413, type: 'invalid_request_error', retry: 'never' },
  unsupported_media_type: { status: 415, type: 'invalid_request_error', retry: 'never' },
  conflict: { status: 409, type: 'invalid_request_error', retry: 'never' },
  idempotency_mismatch: { status: 422, type: 'invalid_request_error', retry: 'never' },
  internal_error: { status: 500, type: 'api_error', retry: 'never' },
} as const satisfies Record<string, { status: number; type: string; retry: 'never' | 'next' }>;

export type ErrorCode = keyof typeof ERRORS;

export function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(ERRORS, value);
}
