import { refundOf } from './pricing.ts';

/** Compared before a payment's notice books credits; the label of `parley_payment_mismatches_total`. */
export const PAYMENT_MISMATCHES = ['checkout', 'session', 'mode', 'livemode', 'status', 'currency', 'amount'] as const;
export type PaymentMismatch = (typeof PAYMENT_MISMATCHES)[number];

/** From its notice; null: the notice does not say. */
export interface PaidSession {
  id: string;
  /** From the URL that the buyer opened; anybody can set it on a payment link. */
  clientReferenceId: string | null;
  /** Only this service can write it into the session. */
  metadataCheckoutId: string | null;
  amount: number | null;
  currency: string | null;
  status: string;
  mode: string;
  /** The mode, live or test, of the key that this service uses. */
  isOfOurMode: boolean;
}

interface ExpectedPayment {
  _id: string;
  payment: string;
  sessionId?: string;
  amount: number;
  currency: string;
}

/** Undefined: the session is the paid one of this checkout (docs/spec.md#payments). */
export function mismatchOf(checkout: ExpectedPayment, session: PaidSession): PaymentMismatch | undefined {
  const { _id: checkoutId, sessionId } = checkout;
  if (checkout.payment !== 'stripe') return 'checkout';
  if (session.clientReferenceId !== checkoutId || session.metadataCheckoutId !== checkoutId) return 'checkout';
  if (sessionId !== undefined && session.id !== sessionId) return 'session';
  if (session.mode !== 'payment') return 'mode';
  if (!session.isOfOurMode) return 'livemode';
  if (session.status !== 'paid') return 'status';
  if (session.currency !== checkout.currency) return 'currency';
  return session.amount === checkout.amount ? undefined : 'amount';
}

/** A refund that failed or was canceled stays so; its money is back with the seller. */
export interface Refund {
  id: string;
  /** In the purchase's currency and minor units. */
  amount: number;
  isFailed: boolean;
}

/** A dispute's money can be withdrawn and reinstated repeatedly; notices can arrive out of order. */
export interface Dispute {
  id: string;
  /** In the purchase's currency and minor units. */
  amount: number;
  withdrawals: number;
  reinstatements: number;
}

/** Gone back to the buyer, in money and in credits. */
export interface Reversed {
  refundedAmount: number;
  refundedMicro: number;
  /** The highest total of a notice, failed refunds included. */
  refundTotal: number;
  refunds: Refund[];
  disputes: Dispute[];
  /** Taken beyond the refunds. */
  disputedMicro: number;
}

/** Money of a purchase went back to the buyer, or was reinstated. */
export type Reversal =
  /** The total paid back so far. */
  | { kind: 'refund'; refundedAmount: number }
  | { kind: 'refund'; refund: Refund }
  | { kind: 'dispute'; disputeId: string; amount: number; currency: string; funds: 'withdrawn' | 'reinstated' };

export interface ReversiblePurchase {
  refundedAmount: number;
  /** Absent in purchases of versions that knew the total alone, as `refundedAmount`. */
  refundTotal?: number;
  refunds?: Refund[];
  disputes?: Dispute[];
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

function withRefund(refunds: readonly Refund[], { id, amount, isFailed }: Refund): Refund[] {
  const before = refunds.find((each) => each.id === id) ?? { amount: 0, isFailed: false };
  const after = { id, amount: Math.max(before.amount, amount), isFailed: before.isFailed || isFailed };
  return [...refunds.filter((each) => each.id !== id), after];
}

const sumOf = (parts: readonly { amount: number }[]) => parts.reduce((sum, { amount }) => sum + amount, 0);

/** Depends on the notices, not on their order. A purchase goes back at most once, by refunds, disputes or both. */
export function reverse(purchase: ReversiblePurchase, reversal: Reversal): Reversed {
  let { refundTotal = purchase.refundedAmount, refunds = [], disputes = [] } = purchase;
  if (reversal.kind === 'dispute') {
    // An amount in the bank's own currency cannot be compared with the price, so the whole price counts as disputed.
    const amount = reversal.currency === purchase.currency ? reversal.amount : purchase.amount;
    disputes = withFunds(disputes, reversal.disputeId, amount, reversal.funds);
  } else if ('refund' in reversal) refunds = withRefund(refunds, reversal.refund);
  else refundTotal = Math.max(refundTotal, reversal.refundedAmount);
  const failed = sumOf(refunds.filter(({ isFailed }) => isFailed));
  const paidBack = sumOf(refunds) - failed;
  // Either may miss refunds, but neither counts one twice: the larger is right.
  const refundedAmount = Math.min(Math.max(paidBack, refundTotal - failed), purchase.amount);
  const disputed = sumOf(disputes.filter(({ withdrawals, reinstatements }) => withdrawals > reinstatements));
  const refundedMicro = refundOf(purchase, refundedAmount);
  const disputedMicro = refundOf(purchase, refundedAmount + disputed) - refundedMicro;
  return { refundedAmount, refundedMicro, refundTotal, refunds, disputes, disputedMicro };
}
