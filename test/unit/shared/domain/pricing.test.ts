import { describe, expect, it } from '@jest/globals';

import fc from 'fast-check';

import { TOKEN_KINDS, withKinds } from '../../../../shared/contracts/events.ts';
import { DEFAULT_RATES } from '../../../../shared/domain/routing.ts';
import { dayOf, holdRates, monthOf, priceUsage, toCredits, toMicro } from '../../../../shared/domain/pricing.ts';

describe('the price of a request', () => {
  it('is one credit a token for mobius and four for oloid', () => {
    const usage = { promptTokens: 10, completionTokens: 20 };
    expect(toCredits(priceUsage(usage, DEFAULT_RATES.mobius))).toBe(30);
    expect(toCredits(priceUsage(usage, DEFAULT_RATES.oloid))).toBe(120);
  });

  it('counts prompt and completion at their own rates', () => {
    const rates = { promptMicro: toMicro(0.25), completionMicro: toMicro(1.5) };
    expect(priceUsage({ promptTokens: 3, completionTokens: 5 }, rates)).toBe(8_250_000);
  });

  it('counts each kind of tokens at its own rate, and never more than is held', () => {
    const count = fc.nat(1_000);
    const kinds = fc.record(Object.fromEntries(Object.keys(TOKEN_KINDS).map((kind) => [kind, count])), {
      requiredKeys: [],
    });
    const rates = fc.record({ promptMicro: count, completionMicro: count, kinds });
    fc.assert(
      fc.property(count, count, kinds, rates, (promptTokens, completionTokens, parts, own) => {
        const counts = { promptTokens, completionTokens };
        const price = priceUsage(withKinds(counts, parts), own);
        expect(price).toBeGreaterThanOrEqual(0);
        expect(price).toBeLessThanOrEqual(priceUsage(counts, holdRates(own)));
      }),
    );
    const usage = { promptTokens: 10, completionTokens: 8, cachedTokens: 6, reasoningTokens: 3 };
    expect(priceUsage(usage, { promptMicro: 10, completionMicro: 20, kinds: { cachedTokens: 1 } })).toBe(206);
  });

  it('the price of a request is nothing for nothing', () => {
    expect(priceUsage({ promptTokens: 0, completionTokens: 0 }, DEFAULT_RATES.oloid)).toBe(0);
  });
});

describe('micro-credits', () => {
  it('are whole numbers where a float would drift', () => {
    expect(toMicro(0.1) + toMicro(0.2)).toBe(toMicro(0.3));
    expect(toMicro(1.005)).toBe(1_005_000);
    expect(toMicro(-4.35)).toBe(-4_350_000);
    expect(toCredits(toMicro(0.000001))).toBe(0.000001);
  });
});

describe('calendar months and days', () => {
  it('calendar months and days begin and end at midnight UTC', () => {
    expect(monthOf(Date.UTC(2026, 11, 31, 23, 59, 59, 999))).toBe('202612');
    expect(monthOf(Date.UTC(2027, 0, 1))).toBe('202701');
    expect(dayOf(Date.UTC(2028, 1, 29, 23, 59))).toBe('20280229');
    expect(dayOf(Date.UTC(2028, 2, 1))).toBe('20280301');
  });
});
