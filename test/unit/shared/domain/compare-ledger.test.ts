import { describe, expect, it } from '@jest/globals';

import { compareAccount, compareDay } from '../../../../shared/domain/compare-ledger.ts';
import type { LedgerGroup, RollUpGroup } from '../../../../shared/domain/compare-ledger.ts';
import type { UsageCounts } from '../../../../shared/domain/roll-up.ts';

const DAY_MS = 86_400_000;
const TODAY_MS = Date.UTC(2026, 10, 22);
const COUNTS: UsageCounts = {
  requests: 2,
  promptTokens: 30,
  completionTokens: 12,
  costMicro: 42_000_000,
  estimatedRequests: 1,
  spendNano: 1,
};
const NOTHING: UsageCounts = {
  requests: 0,
  promptTokens: 0,
  completionTokens: 0,
  costMicro: 0,
  estimatedRequests: 0,
  spendNano: 0,
};

/** The roll-ups of a day in these widths, of all requests and by entity. */
const rollUpsOf = (widths: readonly RollUpGroup['width'][], counts = COUNTS): RollUpGroup[] =>
  widths.flatMap((width) => (['all', 'entity'] as const).map((scope) => ({ width, scope, ...counts })));

describe('the roll-ups of a day', () => {
  const ofToday = (rollUps: readonly RollUpGroup[]) => compareDay(TODAY_MS, COUNTS, rollUps, TODAY_MS + 1_000);

  it.each([
    ['a row of a minute is missing', rollUpsOf(['1d', '1h'])],
    ['a width says other tokens', [...rollUpsOf(['1d', '1h']), ...rollUpsOf(['1m'], { ...COUNTS, promptTokens: 29 })]],
    ['only the cost differs', [...rollUpsOf(['1d', '1h']), ...rollUpsOf(['1m'], { ...COUNTS, costMicro: 1 })]],
  ])('drift where %s', (_what, rollUps) => {
    expect(ofToday(rollUps)).toBeGreaterThan(0);
  });

  it('drift by the tokens of each width and scope that differs', () => {
    expect(ofToday([...rollUpsOf(['1d', '1h']), ...rollUpsOf(['1m'], { ...COUNTS, promptTokens: 25 })])).toBe(2 * 5);
  });

  it('need no rows of minutes once these may have been deleted, after 35 days', () => {
    const inDays = (days: number) => compareDay(TODAY_MS, COUNTS, rollUpsOf(['1d', '1h']), TODAY_MS + days * DAY_MS);

    expect(inDays(32)).toBeGreaterThan(0);
    expect(inDays(33)).toBe(0);
  });

  it('drift where the ledger knows of no request', () => {
    expect(compareDay(TODAY_MS, undefined, [], TODAY_MS)).toBe(0);
    expect(compareDay(TODAY_MS, undefined, rollUpsOf(['1d']), TODAY_MS)).toBe(2 * 42);
  });
});

describe('an account', () => {
  const group = (more: Partial<LedgerGroup>): LedgerGroup => ({
    ...NOTHING,
    type: 'usage',
    mode: 'live',
    dayMs: TODAY_MS,
    amountMicro: 0,
    ...more,
  });
  const LEDGER = [
    group({ type: 'grant', mode: undefined, dayMs: undefined, amountMicro: 1_000 }),
    group({ amountMicro: -42, promptTokens: 30, completionTokens: 12 }),
    group({ mode: 'test', promptTokens: 7 }),
    group({ dayMs: TODAY_MS - 30 * DAY_MS, amountMicro: -8, promptTokens: 8 }),
  ];
  const CORRECT = { balanceMicro: 950, tokensByMonth: { 202611: 42, 202610: 8 } };

  it('has fewer tokens of a month by those of a refund, and by no other adjustment', () => {
    const refund = group({ type: 'adjustment', amountMicro: 8, promptTokens: -6, completionTokens: -2 });
    const other = group({ type: 'adjustment', mode: undefined, dayMs: undefined, amountMicro: -5 });

    expect(compareAccount([...LEDGER, refund, other], CORRECT).correct).toEqual({
      balanceMicro: 950 + 8 - 5,
      tokensByMonth: { 202611: 42 - 8, 202610: 8 },
    });
  });

  it('drifts by what it has too little and too much, in months of which either knows', () => {
    const account = { balanceMicro: 955, tokensByMonth: { 202611: 40, 202609: 3 } };

    expect(compareAccount(LEDGER, account)).toMatchObject({ balanceDriftMicro: 5, budgetDriftTokens: 2 + 8 + 3 });
  });
});
