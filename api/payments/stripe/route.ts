import { Router } from 'express';
import type { RequestHandler } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { PaymentBookings } from '../../../shared/mongo/accounts/payment-bookings.ts';
import type { PaymentNotice } from '../../../shared/mongo/accounts/payment-notices.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { setAddressHeaders } from '../../http/count-requests.ts';
import { addressBlockOf } from '../../http/head-guards.ts';
import { createBodyBudget, readBody } from '../../http/read-body.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { contextOf } from '../../http/request-context.ts';
import type { BookPayment } from '../book-payment.ts';
import type { StripePayment } from './stripe-payment.ts';
import type { StripeNotice } from './events.ts';

export interface StripeWebhookDeps {
  stripe: StripePayment;
  bookPayment: BookPayment;
  paymentBookings: PaymentBookings;
  clock: Clock;
}

/** Stripe's events are only a few KiB, and anyone can send here. */
const BODY_BYTES_MAX = 256 * 1024;
/** Arriving bodies may hold this much together, per address and in total. */
const ADDRESS_BYTES_MAX = 8 * 1024 * 1024;
const ALL_BYTES_MAX = 64 * 1024 * 1024;

const BODY_LIMIT = {
  bytes: BODY_BYTES_MAX,
  fault: () => new ServiceError('invalid_request', `A callback must not exceed ${BODY_BYTES_MAX} bytes.`),
};

/** The budget's error mentions accounts, but callbacks have none. */
function withoutAccount(cause: unknown): unknown {
  if (!(cause instanceof ServiceError) || cause.code !== 'model_unavailable') return cause;
  return new ServiceError(cause.code, 'Callbacks that are on their way take all the room there is; send it again.', {
    retryAfterSeconds: cause.retryAfterSeconds ?? 1,
  });
}

/** Reads the body as it was sent, because the signature covers those bytes. */
function readRaw(): RequestHandler {
  const budget = createBodyBudget(ADDRESS_BYTES_MAX, ALL_BYTES_MAX);
  return async (req, _res, next) => {
    const share = budget.open(addressBlockOf(req.ip));
    try {
      req.body = await readBody(req, BODY_LIMIT, share);
    } catch (cause) {
      throw withoutAccount(cause);
    } finally {
      share.close();
    }
    next();
  };
}

/** `POST /billing/stripe/webhook` needs no key: events are signed. A repeat gets 200, or Stripe sends it again. */
export function createStripeWebhookRoute(deps: StripeWebhookDeps): Router {
  const { stripe, bookPayment, paymentBookings, clock } = deps;

  type Reversed = Extract<StripeNotice['effect'], { kind: 'reversed' }>;

  /** If the payment is not booked, asks Stripe about it, because the payment's own notice may not have arrived yet. */
  async function reverse({ reference, reversal }: Reversed, requestId: string, notice: PaymentNotice): Promise<void> {
    let outcome = await bookPayment.reverse(reference, reversal, requestId, notice);
    if (outcome === 'unknown' && reference.paymentId !== undefined) {
      const checkoutId = await stripe.checkoutOf(reference.paymentId);
      if (checkoutId !== undefined) {
        outcome = await bookPayment.reverse({ checkoutId }, reversal, requestId, notice);
      }
    }
    if (outcome !== 'unpaid') return;
    throw new ServiceError('conflict', 'The purchase that this is about is not booked yet; send the event again.');
  }

  async function hear({ effect, ...notice }: StripeNotice, requestId: string): Promise<void> {
    switch (effect.kind) {
      case 'paid':
        await bookPayment.complete(effect.paid, requestId, notice);
        return;
      case 'changed':
        await paymentBookings.changeStatus(effect.checkout, effect.status, clock.now(), notice);
        return;
      case 'reversed':
        await reverse(effect, requestId, notice);
        return;
      case 'other':
        return;
    }
  }

  const router = Router();
  router
    .route('/billing/stripe/webhook')
    .post(readRaw(), async (req, res) => {
      const body: unknown = req.body;
      const signature = req.headers['stripe-signature'];
      if (!Buffer.isBuffer(body) || typeof signature !== 'string') {
        throw new ServiceError('invalid_request', 'The callback needs a body and one Stripe-Signature.');
      }
      await hear(stripe.readCallback(body, signature), contextOf(res).requestId);
      setAddressHeaders(res);
      res.json({ received: true });
    })
    .all(methodNotAllowed('POST'));
  return router;
}
