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
export interface ExpectedPayment {
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
