import Stripe from 'stripe';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { CheckoutRow } from '../../../shared/mongo/accounts/checkout-repository.ts';
import type { Logger } from '../../../shared/logging/logger.ts';
import type { Payment } from '../payment.ts';
import { isSnapshotEvent, ownId, toNotice } from './events.ts';
import type { StripeNotice } from './events.ts';

export interface StripeSettings {
  secretKey: string;
  webhookSecret: string;
  /** The address of Stripe's API, for tests; Stripe's own by default. */
  apiUrl?: string;
}

export interface StripePayment extends Payment {
  name: 'stripe';
  /** Throws `invalid_request` unless Stripe has just signed the raw body as a snapshot event. */
  readCallback(body: Buffer, signature: string): StripeNotice;
  /** The checkout that a payment was for, if it was one of this service's. Throws `model_unavailable`. */
  checkoutOf(paymentId: string): Promise<string | undefined>;
}

/** Limit for one attempt of a call to Stripe; the package tries twice more if the network or Stripe fails. */
const CALL_MS = 8_000;
const RETRIES = 2;

function notAnEvent(cause?: unknown): ServiceError {
  return new ServiceError(
    'invalid_request',
    'The callback must be an event of Stripe with its object; choose snapshot payloads for this endpoint.',
    { cause },
  );
}

/** Errors caused by the order, not by Stripe or the settings. */
const ORDER_FAULTS: ReadonlySet<string> = new Set(['amount_too_small', 'amount_too_large']);

function clientOf({ secretKey, apiUrl }: StripeSettings): Stripe {
  const url = apiUrl === undefined ? undefined : new URL(apiUrl);
  return new Stripe(secretKey, {
    timeout: CALL_MS,
    maxNetworkRetries: RETRIES,
    telemetry: false,
    ...(url === undefined
      ? {}
      : { protocol: url.protocol === 'http:' ? 'http' : 'https', host: url.hostname, port: url.port }),
  });
}

/** `sk_live_…`, or a restricted `rk_live_…`. */
const LIVE_KEY = /^[a-z]+_live_/;

function titleOf({ creditsMicro }: CheckoutRow): string {
  return `${(creditsMicro / 1_000_000).toLocaleString('en', { maximumFractionDigits: 6 })} credits`;
}

function toSession(checkout: CheckoutRow): Stripe.Checkout.SessionCreateParams {
  const metadata = { checkout_id: checkout._id, tenant_id: checkout.tenantId };
  return {
    mode: 'payment',
    client_reference_id: checkout._id,
    metadata,
    // Stripe copies the metadata to the charge, where a refund finds the purchase by it.
    payment_intent_data: { metadata },
    line_items: [
      {
        quantity: 1,
        price_data: {
          currency: checkout.currency,
          unit_amount: checkout.amount,
          product_data: { name: titleOf(checkout) },
        },
      },
    ],
    // The buyer pays in the price list's currency, because the notice's amount is compared with the checkout's.
    adaptive_pricing: { enabled: false },
    success_url: checkout.successUrl,
    cancel_url: checkout.cancelUrl,
  };
}

function toFault(log: Logger, error: unknown, checkoutId: string): ServiceError {
  if (error instanceof Stripe.errors.StripeError && ORDER_FAULTS.has(error.code ?? '')) {
    return new ServiceError('invalid_request', 'The price of these credits is outside of what can be paid by card.', {
      cause: error,
      param: 'credits',
    });
  }
  log.error(`Stripe has not opened the checkout ${checkoutId}.`, { error });
  return new ServiceError('model_unavailable', 'The payment provider cannot open a checkout; try again shortly.', {
    cause: error,
    retryAfterSeconds: 5,
  });
}

/** The package throws a different error if the signature is right but the body is not an event. */
function readEvent(
  stripe: ReturnType<typeof clientOf>,
  settings: StripeSettings,
  body: Buffer,
  signature: string,
): Stripe.Event {
  let event: Stripe.Event | null = null;
  try {
    event = stripe.webhooks.constructEvent(body, signature, settings.webhookSecret);
  } catch (cause) {
    if (!(cause instanceof Stripe.errors.StripeSignatureVerificationError)) throw notAnEvent(cause);
    throw new ServiceError('invalid_request', 'The Stripe-Signature does not fit the body, or is too old.', { cause });
  }
  if (isSnapshotEvent(event)) return event;
  throw notAnEvent();
}

/** Stripe Checkout: the buyer pays on Stripe's page, and Stripe calls back. */
export function createStripePayment(settings: StripeSettings, log: Logger): StripePayment {
  const stripe = clientOf(settings);
  const isLive = LIVE_KEY.test(settings.secretKey);

  return {
    name: 'stripe',

    async open(checkout) {
      try {
        // With this key a repeated call, by the package or by us, finds the session that the first call created.
        const session = await stripe.checkout.sessions.create(toSession(checkout), { idempotencyKey: checkout._id });
        if (session.url === null) throw new Error('Stripe gave the session no URL');
        return { url: session.url, sessionId: session.id, expiresAt: session.expires_at * 1000 };
      } catch (error) {
        throw toFault(log, error, checkout._id);
      }
    },

    readCallback(body, signature) {
      return toNotice(readEvent(stripe, settings, body, signature), isLive);
    },

    async checkoutOf(paymentId) {
      try {
        const { metadata } = await stripe.paymentIntents.retrieve(paymentId);
        return ownId(metadata['checkout_id']);
      } catch (error) {
        if (error instanceof Stripe.errors.StripeError && error.code === 'resource_missing') return undefined;
        log.error(`Stripe does not say what the payment ${paymentId} was for.`, { error });
        throw new ServiceError('model_unavailable', 'The payment provider cannot be asked; send the event again.', {
          cause: error,
          retryAfterSeconds: 5,
        });
      }
    },
  };
}
