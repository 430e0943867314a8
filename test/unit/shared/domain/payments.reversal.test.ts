import { expect, it } from '@jest/globals';
import fc from 'fast-check';

import { reverse } from '../../../../shared/domain/payments.ts';
import type { Reversal, Reversed } from '../../../../shared/domain/payments.ts';

const PURCHASE = { creditsMicro: 10_000_001, amount: 999, currency: 'eur' };
const UNTOUCHED: Reversed = {
  refundedAmount: 0,
  refundedMicro: 0,
  refundTotal: 0,
  refunds: [],
  disputes: [],
  disputedMicro: 0,
};

const all = (reversals: readonly Reversal[]) =>
  reversals.reduce<Reversed>((state, each) => reverse({ ...PURCHASE, ...state }, each), UNTOUCHED);
const taken = ({ refundedMicro, disputedMicro }: Reversed) => refundedMicro + disputedMicro;

const reversals = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('refund' as const), refundedAmount: fc.integer({ min: 0, max: 1_200 }) }),
    fc.record({
      kind: fc.constant('refund' as const),
      refund: fc.record({ id: fc.constantFrom('re_1', 're_2'), amount: fc.nat(1_200), isFailed: fc.boolean() }),
    }),
    fc.record({
      kind: fc.constant('dispute' as const),
      disputeId: fc.constantFrom('du_1', 'du_2'),
      amount: fc.integer({ min: 0, max: 1_200 }),
      currency: fc.constantFrom('eur', 'usd'),
      funds: fc.constantFrom('withdrawn' as const, 'reinstated' as const),
    }),
  ),
);

it('takes the same whatever the order of the notices, and never more than was bought', () => {
  fc.assert(
    fc.property(
      reversals.chain((list) => fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length }))),
      ([one, other]) => {
        expect(taken(all(other))).toBe(taken(all(one)));
        expect(taken(all(one))).toBeGreaterThanOrEqual(0);
        expect(taken(all(one))).toBeLessThanOrEqual(PURCHASE.creditsMicro);
      },
    ),
  );
});

it('takes all of it when it is disputed in a currency that cannot be compared', () => {
  const dispute = { kind: 'dispute', disputeId: 'du_1', amount: 5, currency: 'usd', funds: 'withdrawn' } as const;
  expect(taken(all([dispute]))).toBe(PURCHASE.creditsMicro);
});
