import { describe, expect, it } from '@jest/globals';

import { toRefusal } from '../../../../shared/requests/refusals.ts';
import type { Principal } from '../../../../shared/domain/principal.ts';

// The sentences read the limits alone.
const PRINCIPAL = {
  limits: { rpm: 61, tpm: 62, dailyRequests: 63, chatRpm: 64, streamRpm: 65 },
  ceilings: { rpm: null, tpm: null, inFlight: null },
  weight: 1,
  testDailyTokens: 66,
  monthlyTokenBudget: 67,
} as Principal;

type Refused = Parameters<typeof toRefusal>[0]['verdict'];

const refuse = (verdict: Refused, retryAfterMs = 1_500, endpoint: 'chat' | 'chat.stream' = 'chat') =>
  toRefusal({ verdict, retryAfterMs }, PRINCIPAL, endpoint);

describe('a refused admission', () => {
  it.each<[Refused, string, number | undefined, RegExp]>([
    ['rpm', 'rpm_exceeded', 2, /key's limit of 61 requests per minute/],
    ['throttle', 'rpm_exceeded', 2, /limit of 64 requests per minute on POST \/chat /],
    ['daily', 'rpm_exceeded', 2, /limit of 63 requests per day/],
    ['tpm', 'tpm_exceeded', 2, /limit of 62 tokens per minute/],
    ['test_tokens', 'tpm_exceeded', 2, /allowance of 66 tokens/],
    ['test_tokens_in_flight', 'tpm_exceeded', 2, /still running/],
    ['credits', 'insufficient_credits', undefined, /balance is used up/],
    ['credits_in_flight', 'insufficient_credits', 2, /still running/],
    ['budget', 'budget_exceeded', undefined, /budget of 67 tokens/],
    ['budget_in_flight', 'budget_exceeded', 2, /still running/],
    ['queue', 'model_unavailable', 2, /queue is full/],
    ['void', 'model_unavailable', 2, /send it again/],
    ['revoked', 'invalid_api_key', undefined, /revoked/],
    ['suspended', 'account_suspended', undefined, /suspended/],
  ])('a refused admission by %s is %s and names the limit', (verdict, code, retryAfterSeconds, message) => {
    const error = refuse(verdict);

    expect(error).toMatchObject({ code, retryAfterSeconds });
    expect(error.message).toMatch(message);
  });

  it('by the throttle of the stream names that one', () => {
    expect(refuse('throttle', 1, 'chat.stream').message).toMatch(
      /limit of 65 requests per minute on POST \/chat\/stream /,
    );
  });

  it('for what is in flight says so in a word for programs', () => {
    expect(refuse('credits_in_flight').reason).toBe('in_flight');
    expect(refuse('credits').reason).toBeUndefined();
  });

  it('a refused admission never asks to wait less than a second', () => {
    expect(refuse('rpm', 0).retryAfterSeconds).toBe(1);
    expect(refuse('rpm', 59_001).retryAfterSeconds).toBe(60);
  });
});
