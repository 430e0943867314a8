import Joi from 'joi';
import type Stripe from 'stripe';

import type { Reversal } from '../../../shared/domain/payments.ts';
import type { PaidCheckout } from '../../../shared/mongo/accounts/payment-bookings.ts';
import type { PaymentNotice } from '../../../shared/mongo/accounts/payment-notices.ts';
import type { PurchaseReference } from '../../../shared/mongo/accounts/purchase-repository.ts';

const amount = Joi.number().integer().min(0).required();
const text = Joi.string().required();

const charge = Joi.object({ amount_refunded: amount });
const refund = Joi.object({ id: text, amount, status: text.allow(null) });
const dispute = Joi.object({ id: text, amount, currency: text });

/** The fields that a reversal needs. A payment that lacks a field matches no checkout: shared/domain/payments.ts. */
const OBJECTS: ReadonlyMap<string, Joi.ObjectSchema> = new Map([
  ['charge.refunded', charge],
  ['refund.created', refund],
  ['refund.updated', refund],
  ['refund.failed', refund],
  ['charge.dispute.funds_withdrawn', dispute],
  ['charge.dispute.funds_reinstated', dispute],
]);

function schemaOf(object: Joi.ObjectSchema): Joi.ObjectSchema {
  const data = Joi.object({ object: object.required() }).required();
  return Joi.object({ id: text, type: text, data }).required().prefs({ allowUnknown: true, convert: false });
}

const ANY = schemaOf(Joi.object());
const SCHEMAS = new Map([...OBJECTS].map(([type, object]) => [type, schemaOf(object)]));

/**
 * True for a value signed by Stripe that contains its object, including the amounts needed for reversals. Thin events
 * contain no object, and other versions of Stripe's API may omit fields.
 */
export function isSnapshotEvent(value: Stripe.Event | null): value is Stripe.Event {
  const schema = SCHEMAS.get(String(value?.type)) ?? ANY;
  return schema.validate(value).error === undefined;
}

/** The meaning of a Stripe event for this service; `other` for events that do not concern it. */
export type StripeNotice = PaymentNotice & {
  effect:
    | { kind: 'paid'; paid: PaidCheckout }
    | {
        kind: 'changed';
        checkout: { checkoutId: string; sessionId: string };
        status: 'processing' | 'failed' | 'expired';
      }
    | { kind: 'reversed'; reference: PurchaseReference; reversal: Reversal }
    | { kind: 'other' };
};

type Effect = StripeNotice['effect'];

const CHECKOUT_ID = /^cs_[0-9A-Za-z]{24}$/;
const OTHER = { kind: 'other' } as const;

/** The field holds one of Stripe's objects, or only its id. Some versions of Stripe's API lack the field. */
function idOf(value: string | { id: string } | null | undefined): { paymentId?: string } {
  if (value === null || value === undefined) return {};
  return { paymentId: typeof value === 'string' ? value : value.id };
}

/** Lets only ids in this service's own format reach a database. */
export function ownId(value: string | null | undefined): string | undefined {
  return value !== null && value !== undefined && CHECKOUT_ID.test(value) ? value : undefined;
}

/** A session may name a checkout in two places. Only the metadata, which this service wrote itself, is trusted. */
function namesOf({ client_reference_id: reference, metadata }: Stripe.Checkout.Session) {
  return { clientReferenceId: reference, metadataCheckoutId: metadata?.['checkout_id'] ?? null };
}

function paidBy(session: Stripe.Checkout.Session, isLive: boolean): Effect {
  const names = namesOf(session);
  const checkoutId = ownId(names.clientReferenceId) ?? ownId(names.metadataCheckoutId);
  if (checkoutId === undefined) return OTHER;
  const { id, amount_total: amount, currency, payment_status: status, mode } = session;
  const said = { id, ...names, amount, currency, status, mode, isOfOurMode: session.livemode === isLive };
  return { kind: 'paid', paid: { checkoutId, ...idOf(session.payment_intent), session: said } };
}

function changedBy(session: Stripe.Checkout.Session, status: 'processing' | 'failed' | 'expired'): Effect {
  const { clientReferenceId, metadataCheckoutId } = namesOf(session);
  const checkoutId = ownId(clientReferenceId);
  if (checkoutId === undefined || metadataCheckoutId !== checkoutId) return OTHER;
  return { kind: 'changed', checkout: { checkoutId, sessionId: session.id }, status };
}

type Refunded = Pick<Stripe.Charge, 'amount_refunded' | 'payment_intent'> & Partial<Pick<Stripe.Charge, 'metadata'>>;

function refundedBy(charge: Refunded): Effect {
  const checkoutId = ownId(charge.metadata?.['checkout_id']);
  const reference = { ...(checkoutId === undefined ? {} : { checkoutId }), ...idOf(charge.payment_intent) };
  return { kind: 'reversed', reference, reversal: { kind: 'refund', refundedAmount: charge.amount_refunded } };
}

/** A refund names only the payment; its metadata is not the checkout's. */
function refundOf({ id, amount, status, payment_intent: payment }: Stripe.Refund): Effect {
  const said = { id, amount, isFailed: status === 'failed' || status === 'canceled' };
  return { kind: 'reversed', reference: idOf(payment), reversal: { kind: 'refund', refund: said } };
}

/** A dispute names only the payment. */
function disputedBy(dispute: Stripe.Dispute, funds: 'withdrawn' | 'reinstated'): Effect {
  const { id: disputeId, amount, currency } = dispute;
  const reference = idOf(dispute.payment_intent);
  return { kind: 'reversed', reference, reversal: { kind: 'dispute', disputeId, amount, currency, funds } };
}

function effectOf(event: Stripe.Event, isLive: boolean): Effect {
  switch (event.type) {
    case 'checkout.session.completed': {
      // A payment method that takes days completes the session first and pays later.
      const session = event.data.object;
      return session.payment_status === 'unpaid' ? changedBy(session, 'processing') : paidBy(session, isLive);
    }
    case 'checkout.session.async_payment_succeeded':
      return paidBy(event.data.object, isLive);
    case 'checkout.session.async_payment_failed':
      return changedBy(event.data.object, 'failed');
    case 'checkout.session.expired':
      return changedBy(event.data.object, 'expired');
    case 'charge.refunded':
      return refundedBy(event.data.object);
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
      return refundOf(event.data.object);
    case 'charge.dispute.funds_withdrawn':
      return disputedBy(event.data.object, 'withdrawn');
    case 'charge.dispute.funds_reinstated':
      return disputedBy(event.data.object, 'reinstated');
    default:
      return OTHER;
  }
}

/**
 * Stripe may send two events with different ids for one occurrence, but the occurrence must have its effect only once.
 * This matters only for disputes, whose money can move several times; all other effects can be repeated safely. The
 * balance transactions of a dispute's event tell its moves apart, so their ids name the occurrence.
 */
function occurrenceOf({ type, data: { object } }: Stripe.Event): { occurrence?: string } {
  if (object.object !== 'dispute') return {};
  const isOfType = ({ amount }: Stripe.BalanceTransaction) =>
    type === 'charge.dispute.funds_withdrawn' ? amount < 0 : amount > 0;
  const moves = ((object as Partial<Stripe.Dispute>).balance_transactions ?? []).filter(isOfType);
  return moves.length === 0 ? {} : { occurrence: [object.id, type, ...moves.map(({ id }) => id).sort()].join(' ') };
}

/** The event must have passed `isSnapshotEvent`. `isLive`: the secret key in use is a live-mode key. */
export function toNotice(event: Stripe.Event, isLive: boolean): StripeNotice {
  return { id: event.id, type: event.type, ...occurrenceOf(event), effect: effectOf(event, isLive) };
}
