import { expect } from '@jest/globals';
import type request from 'supertest';

export interface Refusal {
  status: number;
  code: string;
  type: string;
  message: string;
  param: string | undefined;
  reason: string | undefined;
  /** `Retry-After` in seconds. */
  retryAfter: number | undefined;
  /** `X-RateLimit-Limit-Requests` and `-Remaining-Requests`. */
  limit: number;
  remaining: number;
}

const RETRY_STATUS: ReadonlySet<number> = new Set([429, 503]);

/** Checks the headers that every response has (docs/spec.md#headers). */
export function expectUniformHeaders({ headers }: Pick<request.Response, 'headers'>): void {
  expect(headers['x-request-id']).toMatch(/^req_[0-9A-Za-z]{24}$/);
  for (const part of ['limit', 'remaining', 'reset']) expect(headers[`x-ratelimit-${part}-requests`]).toMatch(/^\d+$/);
  expect(headers['x-powered-by']).toBeUndefined();
  expect(headers['x-content-type-options']).toBe('nosniff');
}

/**
 * What a refusal says, once it was checked to have the form that every refusal has
 * (docs/spec.md#error-object).
 */
export function refusalOf(response: request.Response): Refusal {
  const { status, headers } = response;
  // A reader of streams gives the text of whatever comes instead.
  const body: unknown = typeof response.body === 'string' ? JSON.parse(response.body) : response.body;
  const { error, ...others } = body as { error: Record<string, string> };
  expectUniformHeaders(response);
  expect(others).toEqual({});
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(error['request_id']).toBe(headers['x-request-id']);
  expect(error['message']).toMatch(/^\S.*[.]$/);
  // RFC 9110 section 11.6.1.
  expect(headers['www-authenticate']).toBe(status === 401 ? 'Bearer' : undefined);
  if (RETRY_STATUS.has(status)) expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
  const retryAfter = headers['retry-after'];
  return {
    status,
    code: error['code'] ?? '',
    type: error['type'] ?? '',
    message: error['message'] ?? '',
    param: error['param'],
    reason: error['reason'],
    retryAfter: retryAfter === undefined ? undefined : Number(retryAfter),
    limit: Number(headers['x-ratelimit-limit-requests']),
    remaining: Number(headers['x-ratelimit-remaining-requests']),
  };
}
