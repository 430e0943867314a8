import { afterAll, beforeAll, expect } from '@jest/globals';

import { lazily } from './lazily.ts';
import type { Started } from './lazily.ts';
import type { TestService } from './service.ts';
import { startStripeDouble, STRIPE_ENV } from './stripe-double.ts';
import type { StripeDouble } from './stripe-double.ts';
import { useService } from './use-service.ts';

/** A service without workers that sells a million credits for 5 euros, paid by a double of Stripe (use-service.ts). */
export function useStripeShop(): { service: TestService; stripe: StripeDouble } {
  const started: Started<StripeDouble> = { value: undefined };
  const stripe = lazily(started, 'Stripe');
  beforeAll(async () => {
    started.value = await startStripeDouble();
  });
  const service = useService(() => ({ workers: 0, env: STRIPE_ENV, stripeApiUrl: stripe.url }));
  beforeAll(async () => {
    const prices = { currency: 'eur', price_per_million_credits: 500, packages: [] };
    expect((await service.admin('put', '/packages', prices)).status).toBe(200);
  });
  // Behind the service, which calls it.
  afterAll(async () => {
    await started.value?.close();
  });
  return { service, stripe };
}
