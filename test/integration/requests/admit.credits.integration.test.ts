import { describe, expect, it } from '@jest/globals';

import { monthOf } from '../../../shared/domain/pricing.ts';
import { openAdmissionLab, RATE } from '../../support/admission-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openAdmissionLab);

const MONTH = monthOf(Date.now());

describe('the balance', () => {
  it('holds the estimate at the rates of prompt and completion', async () => {
    const key = await lab.key({}, 1_000);

    await key.admit({ promptTokens: 3, maxTokens: 5, rates: { promptMicro: 2 * RATE, completionMicro: 10 * RATE } });

    expect(await key.figures()).toMatchObject({ ledgerMicro: 1_000 * RATE, heldMicro: 56 * RATE, pendingMicro: 0 });
  });

  it('and the budget hold nothing for a free request, although both are overdrawn', async () => {
    const key = await lab.key({ monthlyTokenBudget: 100 });
    await key.publish({ balanceMicro: -7 * RATE, tokensByMonth: { [MONTH]: 130 } });

    const free = {
      isFree: true,
      promptTokens: 0,
      maxTokens: 0,
      rates: { promptMicro: 0, completionMicro: 0 },
    } as const;
    expect(await key.admit(free)).toMatchObject({ verdict: 'admitted' });

    expect(await key.figures()).toMatchObject({ heldMicro: 0, budgetUsedTokens: 130 });
  });

  it('lets waiting take as long as recent requests took, from 1 to 30 s', async () => {
    const key = await lab.key({}, 20);
    await key.admit();
    const account = lab.keys.account(key.principal.tenantId);
    for (const [duration, retryAfterMs] of [
      [200, 1_000],
      [4_000, 4_000],
      [600_000, 30_000],
    ]) {
      await lab.redis.hset(account, 'duration', String(duration));
      expect(await key.admit()).toMatchObject({ verdict: 'credits_in_flight', retryAfterMs });
    }
  });
});

describe('the monthly token budget', () => {
  const budget = { monthlyTokenBudget: 100 };

  it('counts what is settled and what is not settled yet', async () => {
    const key = await lab.key(budget);
    await key.publish({ balanceMicro: 1e12, tokensByMonth: { [MONTH]: 60 } });
    await lab.redis.hset(lab.keys.account(key.principal.tenantId), `pendingTokens:${MONTH}`, 40);

    expect(await key.admit()).toMatchObject({ verdict: 'budget', retryAfterMs: 0 });
    expect((await key.figures()).budgetUsedTokens).toBe(100);
  });

  it('is that of its first acceptance for a request that is admitted again, as its charge will be', async () => {
    const key = await lab.key(budget);
    const acceptedAt = Date.UTC(2026, 0, 31);
    const account = lab.keys.account(key.principal.tenantId);
    await key.publish({ balanceMicro: 1_000 * RATE, tokensByMonth: { 202601: 100 } });
    expect((await key.admit({ acceptedAt })).verdict).toBe('budget');

    await key.publish({ balanceMicro: 1_000 * RATE, tokensByMonth: { 202601: 50, [MONTH]: 100 } });

    expect((await key.admit({ acceptedAt })).verdict).toBe('admitted');
    expect(await lab.redis.hmget(account, 'heldTokens:202601', `heldTokens:${MONTH}`)).toEqual(['20', null]);
  });

  it('is that of the month in Redis, to which the charge will count, whatever the clock of the ingress says', async () => {
    const key = await lab.key(budget);
    await key.publish({ balanceMicro: 1_000 * RATE, tokensByMonth: { [monthOf(Date.now())]: 100 } });

    await key.admit();

    expect((await key.admit({}, Date.now() + 31 * 86_400_000)).verdict).toBe('budget');
  });

  it('always admits one request while something is left and nothing is held', async () => {
    const key = await lab.key(budget);
    await key.publish({ balanceMicro: 1e12, tokensByMonth: { [MONTH]: 99 } });

    expect((await key.admit({ promptTokens: 5_000 })).verdict).toBe('admitted');
    expect((await key.admit()).verdict).toBe('budget_in_flight');
  });
});

describe('the rest of the daily allowance of test keys', () => {
  it('lets a request in whose prompt leaves some of the rest for an answer, and no more than that', async () => {
    const key = await lab.key({ mode: 'test', testDailyTokens: 50 }, 0);
    for (let count = 0; count < 2; count += 1) await key.admit();

    // Ten tokens are left.
    const isRefused = { verdict: 'test_tokens_in_flight' };
    expect(await key.admit({ promptTokens: 10, maxTokens: 100 })).toMatchObject(isRefused);
    expect(await key.admit({ promptTokens: 9, maxTokens: 100, queue: 'batch' })).toMatchObject({
      verdict: 'test_tokens',
    });
    const requestId = 'req_last_of_day';
    expect((await key.admit({ promptTokens: 9, maxTokens: 100, requestId })).verdict).toBe('admitted');
    expect(await lab.redis.hget(lab.keys.record(requestId), 'holdTokens')).toBe('10');
    expect(await key.admit({ promptTokens: 1, maxTokens: 1 })).toMatchObject(isRefused);
  });
});
