import type { Router } from 'express';

import type { CheckoutRepository } from '../../shared/infra/mongo/accounts/checkout-repository.ts';
import { createStripeWebhookRoute } from './stripe/route.ts';
import { createTestPaymentRoute } from './test-page/route.ts';
import { createBookPayment } from './book-payment.ts';
import type { BookPaymentDeps } from './book-payment.ts';
import type { StripePayment } from './stripe/stripe-payment.ts';

/** Where the payment's word comes in, without a key: Stripe's callback, or the test page. */
export function createPaymentRoute(
  { stripe }: { stripe?: StripePayment },
  deps: BookPaymentDeps & { checkouts: CheckoutRepository },
): Router {
  const bookPayment = createBookPayment(deps);
  return stripe === undefined
    ? createTestPaymentRoute({ ...deps, bookPayment })
    : createStripeWebhookRoute({ ...deps, stripe, bookPayment });
}
