import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { priceOf, refundOf } from '../../../../shared/domain/pricing.ts';

describe('a free amount of credits', () => {
  it.each([
    [1_000_000_000_000, 500, 500],
    [1_000_000_000_001, 500, 501],
    [1_000_000, 500, 1],
    [1_000_000_000_000_000, 99_999_999, 99_999_999_000],
  ])('a free amount of credits of %d micro-credits at %d costs %d', (creditsMicro, pricePerMillion, amount) => {
    expect(priceOf(creditsMicro, pricePerMillion, 'usd')).toBe(amount);
  });

  it.each([
    ['jpy', 1_001],
    ['kwd', 1_010],
    ['isk', 1_100],
    ['ugx', 1_100],
  ])('costs in %s what can be paid in it', (currency, amount) => {
    expect(priceOf(1_000_000_000_001, 1_000, currency)).toBe(amount);
    expect(priceOf(amount * 1_000_000_000, 1_000, currency)).toBe(amount);
  });
});

describe('a refund', () => {
  const purchase = { creditsMicro: 1_000_000, amount: 3 };

  it.each([
    [0, 0],
    [1, 333_333],
    [2, 666_666],
    [3, 1_000_000],
    [4, 1_000_000],
    [-1, 0],
  ])('of %d of 3 minor units takes %d of a million back', (refunded, micro) => {
    expect(refundOf(purchase, refunded)).toBe(micro);
  });

  it('in any parts takes all back in the end, and never gives', () => {
    const amounts = fc.record({
      creditsMicro: fc.integer({ min: 1, max: 1_000_000_000_000_000 }),
      amount: fc.integer({ min: 1, max: 99_999_999 }),
    });
    fc.assert(
      fc.property(amounts, fc.array(fc.integer({ min: 0, max: 99_999_999 })), (bought, parts) => {
        const steps = [...parts.filter((part) => part < bought.amount).toSorted((a, b) => a - b), bought.amount];
        const taken = steps.map((step) => refundOf(bought, step));
        expect(taken).toEqual(taken.toSorted((a, b) => a - b));
        expect(taken.at(-1)).toBe(bought.creditsMicro);
      }),
    );
  });
});
