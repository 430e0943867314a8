import express, { Router } from 'express';
import type { RequestHandler } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { PurchaseRepository } from '../../../shared/infra/mongo/accounts/purchase-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { setAddressHeaders } from '../../admission/limit-headers.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { contextOf } from '../../http/request-context.ts';
import type { BookPayment } from '../book-payment.ts';
import type { StripePayment } from './stripe-payment.ts';
import type { StripeNotice } from './to-notice.ts';

export interface StripeWebhookDeps {
  stripe: Pick<StripePayment, 'readCallback'>;
  bookPayment: BookPayment;
  purchases: Pick<PurchaseRepository, 'change'>;
  clock: Clock;
}

/** Stripe's events are a few KiB; anyone can send here. */
const BODY_BYTES_MAX = 256 * 1024;

/** The signature is over the bytes as they were sent. */
function readRaw(): RequestHandler {
  const read = express.raw({ type: () => true, limit: BODY_BYTES_MAX, inflate: false });
  return (req, res, next) => {
    read(req, res, (cause?: unknown) => {
      if (cause === undefined) next();
      else next(new ServiceError('invalid_request', 'The callback could not be read.', { cause }));
    });
  };
}

/**
 * `POST /billing/stripe/webhook`, outside of key authentication: who calls is told by the signature. An event that has
 * had its effect is answered 200 again, because Stripe repeats it until it hears so.
 */
export function createStripeWebhookRoute(deps: StripeWebhookDeps): Router {
  const { stripe, bookPayment, purchases, clock } = deps;

  async function hear({ effect, ...notice }: StripeNotice, requestId: string): Promise<void> {
    switch (effect.kind) {
      case 'paid':
        await bookPayment.complete(effect.paid, requestId, notice);
        return;
      case 'changed':
        await purchases.change(effect.checkoutId, effect.status, clock.now(), notice);
        return;
      case 'refunded':
        if ((await bookPayment.refund(effect.refund, requestId, notice)) === 'heard') return;
        throw new ServiceError('conflict', 'The purchase of this refund is not booked yet; send the event again.');
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
