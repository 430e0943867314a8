import type { Router } from 'express';

import type { Config } from '../../shared/config/settings.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { PriceList } from '../../shared/mongo/accounts/price-repository.ts';
import type { Payment } from './payment.ts';
import type { StripePayment } from './stripe/stripe-payment.ts';
import { createTestPayment, createTestPaymentRoute } from './test-payment.ts';
import type { CheckoutRepository } from '../../shared/mongo/accounts/checkout-repository.ts';
import { createStripeWebhookRoute } from './stripe/route.ts';
import { createBookPayment } from './book-payment.ts';
import type { BookPaymentDeps } from './book-payment.ts';

/**
 * Opens what `PAYMENTS` names; undefined: nothing is sold. `stripeApiUrl` is for tests. Stripe's package is loaded only
 * if needed, because its 271 modules would take a fifth of an ingress's start.
 */
export async function openPayment(
  { payments }: Config,
  log: Logger,
  stripeApiUrl?: string,
): Promise<{ payment: Payment; stripe?: StripePayment } | undefined> {
  const { kind, stripeSecretKey: secretKey, stripeWebhookSecret: webhookSecret } = payments;
  if (kind === 'test') return { payment: createTestPayment() };
  if (kind === 'none' || secretKey === undefined || webhookSecret === undefined) return undefined;
  const { createStripePayment } = await import('./stripe/stripe-payment.ts');
  const created = createStripePayment(
    { secretKey, webhookSecret, ...(stripeApiUrl === undefined ? {} : { apiUrl: stripeApiUrl }) },
    log,
  );
  return { payment: created, stripe: created };
}

const NOTHING: PriceList = { currency: 'usd', pricePerMillion: null, packages: [] };

/** Prices of the test page. If real money is involved, an administrator sets every price. */
const TEST_PRICES: PriceList = {
  currency: 'usd',
  pricePerMillion: 500,
  packages: [
    { id: 'small', name: 'Small', creditsMicro: 1_000_000_000_000, amount: 500, createdAt: 0 },
    { id: 'large', name: 'Large', creditsMicro: 10_000_000_000_000, amount: 4_000, createdAt: 0 },
  ],
};

/** The prices that apply until an administrator sets them. */
export function pricesUnset({ payments }: Config): PriceList {
  return payments.kind === 'test' ? TEST_PRICES : NOTHING;
}

/** The route that receives payment notices without a key: Stripe's webhook, or the test page. */
export function createPaymentRoute(
  { stripe }: { stripe?: StripePayment },
  deps: BookPaymentDeps & { checkouts: CheckoutRepository },
): Router {
  const bookPayment = createBookPayment(deps);
  return stripe === undefined
    ? createTestPaymentRoute({ ...deps, bookPayment })
    : createStripeWebhookRoute({ ...deps, stripe, bookPayment });
}
