import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';

import { balanceOf, buy } from '../support/billing.ts';
import { refusalOf } from '../support/refusal.ts';
import { proxyTo } from '../support/store-proxy.ts';
import type { StoreProxy } from '../support/store-proxy.ts';
import { mongoUri, redisUrl } from '../support/stores.ts';
import { callBack, eventOf, startStripeDouble, STRIPE_ENV } from '../support/stripe-double.ts';
import type { StripeDouble } from '../support/stripe-double.ts';
import { apiOf } from '../support/tenant-api.ts';
import { useService } from '../support/use-service.ts';
import { waitFor } from '../support/wait-for.ts';

/** A call to a store is given a second and one more try; a hang would take many times that. */
const LIMIT_MS = 8_000;

let stripe: StripeDouble;
const stores: Partial<Record<'MongoDB' | 'Redis', StoreProxy>> = {};
beforeAll(async () => {
  stripe = await startStripeDouble();
  stores.MongoDB = await proxyTo(mongoUri(`billing${String(process.pid)}`));
  stores.Redis = await proxyTo(redisUrl());
});
const service = useService(() => ({
  workers: 0,
  env: { ...STRIPE_ENV, MONGODB_URI: stores.MongoDB?.url ?? '', REDIS_URL: stores.Redis?.url ?? '' },
  stripeApiUrl: stripe.url,
}));
beforeAll(async () => {
  await service.admin('put', '/packages', { currency: 'eur', price_per_million_credits: 500, packages: [] });
});
afterEach(() => {
  for (const proxy of Object.values(stores)) proxy.restore();
});
afterAll(async () => {
  await stripe.close();
  for (const proxy of Object.values(stores)) await proxy.close();
});

it.each(['MongoDB', 'Redis'] as const)(
  'a payment that comes while %s is away counts once it is back',
  async (store) => {
    const tenant = await service.startTenant({ credits: 0 });
    const { body } = await buy(service, tenant, { credits: 2_000_000 });
    expect(await balanceOf(service, tenant)).toBe(0);
    const session = { client_reference_id: body.id, payment_status: 'paid', payment_intent: null };
    const event = eventOf('checkout.session.completed', session);
    stores[store]?.cut();

    const start = performance.now();
    expect(refusalOf(await callBack(service, event))).toMatchObject({ status: 503, code: 'model_unavailable' });
    expect(performance.now() - start).toBeLessThan(LIMIT_MS);

    stores[store]?.restore();
    await waitFor(
      async () => ((await callBack(service, event)).status === 200 ? true : undefined),
      'the event to be heard',
    );
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
    const { body: list } = await apiOf(service, tenant.key)('get', '/billing/transactions');
    expect(list.data).toHaveLength(1);
  },
);
