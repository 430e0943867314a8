import type Stripe from 'stripe';

import type { PaidCheckout, PaymentNotice, Refund } from '../../../shared/infra/mongo/accounts/purchase-repository.ts';

/** What an event of Stripe means here; what is nothing of ours is `other`. */
export type StripeNotice = PaymentNotice & {
  effect:
    | { kind: 'paid'; paid: PaidCheckout }
    | { kind: 'changed'; checkoutId: string; status: 'processing' | 'failed' | 'expired' }
    | { kind: 'refunded'; refund: Refund }
    | { kind: 'other' };
};

const CHECKOUT_ID = /^cs_[0-9A-Za-z]{24}$/;
const OTHER = { kind: 'other' } as const;

/** An object of Stripe's, or only its id. */
function idOf(value: string | { id: string } | null): { paymentId?: string } {
  if (value === null) return {};
  return { paymentId: typeof value === 'string' ? value : value.id };
}

/** Only ids of the form that this service gives reach a database. */
function ownId(value: string | null | undefined): string | undefined {
  return value !== null && value !== undefined && CHECKOUT_ID.test(value) ? value : undefined;
}

function paidBy(session: Stripe.Checkout.Session): StripeNotice['effect'] {
  const checkoutId = ownId(session.client_reference_id);
  if (checkoutId === undefined) return OTHER;
  return { kind: 'paid', paid: { checkoutId, ...idOf(session.payment_intent) } };
}

function changedBy(
  session: Stripe.Checkout.Session,
  status: 'processing' | 'failed' | 'expired',
): StripeNotice['effect'] {
  const checkoutId = ownId(session.client_reference_id);
  return checkoutId === undefined ? OTHER : { kind: 'changed', checkoutId, status };
}

function refundedBy(charge: Stripe.Charge): StripeNotice['effect'] {
  const checkoutId = ownId(charge.metadata['checkout_id']);
  const refund = {
    ...(checkoutId === undefined ? {} : { checkoutId }),
    ...idOf(charge.payment_intent),
    refundedAmount: charge.amount_refunded,
  };
  return { kind: 'refunded', refund };
}

function effectOf(event: Stripe.Event): StripeNotice['effect'] {
  switch (event.type) {
    case 'checkout.session.completed': {
      // A means of payment that takes days completes the session first and pays later.
      const session = event.data.object;
      return session.payment_status === 'unpaid' ? changedBy(session, 'processing') : paidBy(session);
    }
    case 'checkout.session.async_payment_succeeded':
      return paidBy(event.data.object);
    case 'checkout.session.async_payment_failed':
      return changedBy(event.data.object, 'failed');
    case 'checkout.session.expired':
      return changedBy(event.data.object, 'expired');
    case 'charge.refunded':
      return refundedBy(event.data.object);
    default:
      return OTHER;
  }
}

export function toNotice(event: Stripe.Event): StripeNotice {
  return { id: event.id, type: event.type, effect: effectOf(event) };
}
