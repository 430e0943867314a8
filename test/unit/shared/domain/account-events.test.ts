import { describe, expect, it } from '@jest/globals';

import { accountEvents } from '../../../../shared/domain/account-events.ts';

const NOW = Date.UTC(2026, 10, 21);
const CREDIT = 1_000_000;
const lastTopUp = { transactionId: 'txn_1', balanceMicro: 1_000 * CREDIT };

const typesOf = (balance: number, used = 0, budget: number | null = null) =>
  accountEvents({ balanceMicro: balance * CREDIT, tokensByMonth: { '202611': used }, lastTopUp }, budget, NOW).map(
    ({ type }) => type,
  );

describe('credits', () => {
  it.each([
    [1_000, []],
    [100.000_001, []],
    [100, ['credits.low']],
    [0.000_001, ['credits.low']],
    [0, ['credits.depleted']],
    [-5, ['credits.depleted']],
  ])('with %s of 1,000 left call for %j', (balance, expected) => {
    expect(typesOf(balance)).toEqual(expected);
  });

  it('that nobody ever granted call for nothing', () => {
    expect(accountEvents({ balanceMicro: 0, tokensByMonth: {} }, null, NOW)).toEqual([]);
  });

  it('have one cause until the next grant or purchase', () => {
    const [low] = accountEvents({ balanceMicro: 50 * CREDIT, tokensByMonth: {}, lastTopUp }, null, NOW);
    const [lower] = accountEvents({ balanceMicro: 9 * CREDIT, tokensByMonth: {}, lastTopUp }, null, NOW + 1);

    expect(low).toMatchObject({ cause: 'txn_1', data: { balance: 50, balance_after_last_top_up: 1_000 } });
    expect(lower?.cause).toBe(low?.cause);
  });
});

describe('a monthly budget of 1,000 tokens', () => {
  it.each([
    [799, []],
    [800, ['budget.threshold_reached']],
    [999, ['budget.threshold_reached']],
    [1_000, ['budget.exceeded']],
  ])('a monthly budget of 1,000 tokens with %i used calls for %j', (used, expected) => {
    expect(typesOf(1_000, used, 1_000)).toEqual(expected);
  });

  it('a monthly budget of 1,000 tokens counts the month of now only', () => {
    const state = { balanceMicro: 1, tokensByMonth: { '202610': 5_000 } };

    expect(accountEvents(state, 1_000, NOW)).toEqual([]);
  });

  it('a monthly budget of 1,000 tokens has one cause a month', () => {
    const state = { balanceMicro: 1, tokensByMonth: { '202611': 900, '202612': 900 } };
    const causes = [NOW, NOW + 1, Date.UTC(2026, 11, 1)].map((now) => accountEvents(state, 1_000, now)[0]?.cause);

    expect(causes).toEqual(['2026-11', '2026-11', '2026-12']);
  });
});
