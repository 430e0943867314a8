import { describe, expect, it } from '@jest/globals';

import { ERRORS, isErrorCode } from '../../../../shared/errors/codes.ts';

/**
 * docs/spec/interface.md section 7, copied by hand: code, HTTP. The types are those of docs/spec/contract.md section 2.
 */
const INTERFACE_TABLE: Record<string, [number, string]> = {
  missing_api_key: [401, 'authentication_error'],
  invalid_api_key: [401, 'authentication_error'],
  expired_api_key: [401, 'authentication_error'],
  endpoint_not_allowed: [403, 'permission_error'],
  account_suspended: [403, 'permission_error'],
  insufficient_credits: [402, 'billing_error'],
  budget_exceeded: [402, 'billing_error'],
  rpm_exceeded: [429, 'rate_limit_error'],
  tpm_exceeded: [429, 'rate_limit_error'],
  invalid_request: [400, 'invalid_request_error'],
  message_too_long: [400, 'invalid_request_error'],
  too_many_messages: [400, 'invalid_request_error'],
  content_policy_violation: [400, 'invalid_request_error'],
  model_unavailable: [503, 'overloaded_error'],
  timeout: [504, 'timeout_error'],
};

/** docs/spec/contract.md section 2: the codes beyond section 7. */
const FURTHER_CODES: Record<string, [number, string]> = {
  context_length_exceeded: [400, 'invalid_request_error'],
  not_found: [404, 'not_found_error'],
  method_not_allowed: [405, 'not_found_error'],
  conflict: [409, 'invalid_request_error'],
  gone: [410, 'invalid_request_error'],
  payload_too_large: [413, 'invalid_request_error'],
  unsupported_media_type: [415, 'invalid_request_error'],
  idempotency_mismatch: [422, 'invalid_request_error'],
  internal_error: [500, 'api_error'],
};

const DOCUMENTED = { ...INTERFACE_TABLE, ...FURTHER_CODES };

describe('the error table', () => {
  it('has every documented code with its status and type', () => {
    const table = Object.fromEntries(Object.entries(ERRORS).map(([code, { status, type }]) => [code, [status, type]]));
    expect(table).toEqual(expect.objectContaining(DOCUMENTED));
  });

  it('the error table has no code that is not documented', () => {
    expect(Object.keys(ERRORS).sort()).toEqual(Object.keys(DOCUMENTED).sort());
  });

  it('knows its codes from names that every object has', () => {
    expect(isErrorCode('timeout')).toBe(true);
    expect(['toString', '__proto__', 'constructor', ''].filter(isErrorCode)).toEqual([]);
  });
});
