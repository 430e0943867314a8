import { refundOf } from '../pricing/pricing.ts';

/** A dispute of a purchase. Its money can be withdrawn and reinstated more than once, and notices change places. */
export interface Dispute {
  id: string;
  /** In the purchase's currency and minor units. */
  amount: number;
  withdrawals: number;
  reinstatements: number;
}

/** How much of a purchase has gone back to the buyer, in money and in credits. */
export interface Reversed {
  refundedAmount: number;
  refundedMicro: number;
  disputes: Dispute[];
  /** What disputes take beyond the refunds. */
  disputedMicro: number;
}

/** What the payment says of money that went back, or came again. */
export type Reversal =
  /** `refundedAmount` is all that was ever paid back. */
  | { kind: 'refund'; refundedAmount: number }
  | { kind: 'dispute'; disputeId: string; amount: number; currency: string; funds: 'withdrawn' | 'reinstated' };

export interface ReversiblePurchase extends Pick<Reversed, 'refundedAmount'>, Partial<Pick<Reversed, 'disputes'>> {
  creditsMicro: number;
  amount: number;
  currency: string;
}

function withFunds(disputes: readonly Dispute[], id: string, amount: number, funds: 'withdrawn' | 'reinstated') {
  const before = disputes.find((each) => each.id === id) ?? { id, amount: 0, withdrawals: 0, reinstatements: 0 };
  const after = {
    id,
    amount: Math.max(before.amount, amount),
    withdrawals: before.withdrawals + (funds === 'withdrawn' ? 1 : 0),
    reinstatements: before.reinstatements + (funds === 'reinstated' ? 1 : 0),
  };
  return [...disputes.filter((each) => each.id !== id), after];
}

/**
 * What has gone back after a reversal. It depends on what was said, not on the order in which it was said: so notices
 * that change places end alike. All of a purchase goes back at most once, whether by refunds, disputes or both.
 */
export function reverse(purchase: ReversiblePurchase, reversal: Reversal): Reversed {
  let { refundedAmount, disputes = [] } = purchase;
  if (reversal.kind === 'refund') refundedAmount = Math.max(refundedAmount, reversal.refundedAmount);
  else {
    // An amount in a currency of the bank's cannot be set against the price: then all of it is disputed.
    const amount = reversal.currency === purchase.currency ? reversal.amount : purchase.amount;
    disputes = withFunds(disputes, reversal.disputeId, amount, reversal.funds);
  }
  refundedAmount = Math.min(refundedAmount, purchase.amount);
  const disputed = disputes
    .filter(({ withdrawals, reinstatements }) => withdrawals > reinstatements)
    .reduce((sum, { amount }) => sum + amount, 0);
  const refundedMicro = refundOf(purchase, refundedAmount);
  const disputedMicro = refundOf(purchase, refundedAmount + disputed) - refundedMicro;
  return { refundedAmount, refundedMicro, disputes, disputedMicro };
}
