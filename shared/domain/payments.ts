import { refundOf } from './pricing.ts';

/** These are compared before a payment's notice books credits; the label of `parley_payment_mismatches_total`. */
export const PAYMENT_MISMATCHES = ['checkout', 'session', 'mode', 'livemode', 'status', 'currency', 'amount'] as const;
export type PaymentMismatch = (typeof PAYMENT_MISMATCHES)[number];

/** A payment's session as its notice describes it; null: the notice does not say. */
export interface PaidSession {
  id: string;
  /** Taken from the URL that the buyer opened; anybody can set it on a payment link. */
  clientReferenceId: string | null;
  /** This service wrote it into the session; nobody else can. */
  metadataCheckoutId: string | null;
  amount: number | null;
  currency: string | null;
  status: string;
  mode: string;
  /** Whether the session is in the mode, live or test, of the key that this service uses. */
  isOfOurMode: boolean;
}

/** The checkout as this service opened it. */
interface ExpectedPayment {
  _id: string;
  payment: string;
  sessionId?: string;
  amount: number;
  currency: string;
}

/** Why a session is not the paid one of this checkout; undefined: it is (docs/spec.md#payments). */
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

/** A refund of a purchase. One that has failed or was canceled stays so; its money is back with the seller. */
export interface Refund {
  id: string;
  /** In the purchase's currency and minor units. */
  amount: number;
  isFailed: boolean;
}

/** A dispute of a purchase. Its money can be withdrawn and reinstated repeatedly; notices can arrive out of order. */
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
  /** The highest total of refunds that a notice gave, failed ones included. */
  refundTotal: number;
  refunds: Refund[];
  disputes: Dispute[];
  /** Disputes take this beyond the refunds. */
  disputedMicro: number;
}

/** A notice about money of a purchase that went back to the buyer, or was reinstated. */
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

/**
 * What has gone back after a reversal. The result depends on which notices came, not on their order. A purchase goes
 * back in full at most once, whether by refunds, disputes or both.
 */
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
  // Either may know of fewer refunds than there are, but of none twice: the larger is right.
  const refundedAmount = Math.min(Math.max(paidBack, refundTotal - failed), purchase.amount);
  const disputed = sumOf(disputes.filter(({ withdrawals, reinstatements }) => withdrawals > reinstatements));
  const refundedMicro = refundOf(purchase, refundedAmount);
  const disputedMicro = refundOf(purchase, refundedAmount + disputed) - refundedMicro;
  return { refundedAmount, refundedMicro, refundTotal, refunds, disputes, disputedMicro };
}
