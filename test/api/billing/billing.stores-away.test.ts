import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';

import { balanceOf, buy } from '../../support/billing.ts';
import { refusalOf } from '../../support/refusal.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri, redisUrl } from '../../support/stores.ts';
import { callBack, eventOf, startStripeDouble, STRIPE_ENV } from '../../support/stripe-double.ts';
import type { StripeDouble, StripeEvent } from '../../support/stripe-double.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A call to a store is given a second and one more try; a hang would take many times that. */
const LIMIT_MS = 8_000;

let stripe: StripeDouble;
const stores: Partial<Record<'MongoDB' | 'Redis', TcpProxy>> = {};
beforeAll(async () => {
  stripe = await startStripeDouble();
  stores.MongoDB = await openTcpProxy(mongoUri(`billing${String(process.pid)}`));
  stores.Redis = await openTcpProxy(redisUrl());
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
  for (const proxy of Object.values(stores)) proxy.set('pass');
});
afterAll(async () => {
  await stripe.close();
  for (const proxy of Object.values(stores)) await proxy.close();
});

const heard = (event: StripeEvent) =>
  waitFor(async () => ((await callBack(service, event)).status === 200 ? true : undefined), 'the event to be heard');

it.each(['MongoDB', 'Redis'] as const)(
  'a payment that comes while %s is away counts once it is back',
  async (store) => {
    const tenant = await service.startTenant({ credits: 0 });
    const { body } = await buy(service, tenant, { credits: 2_000_000 });
    expect(await balanceOf(service, tenant)).toBe(0);
    const event = eventOf('checkout.session.completed', stripe.paid(String(body.id)));
    stores[store]?.set('reset');

    const start = performance.now();
    expect(refusalOf(await callBack(service, event))).toMatchObject({ status: 503, code: 'model_unavailable' });
    expect(performance.now() - start).toBeLessThan(LIMIT_MS);

    stores[store]?.set('pass');
    await heard(event);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
    const { body: list } = await apiOf(service, tenant.key)('get', '/billing/transactions');
    expect(list.data).toHaveLength(1);
  },
);

it.each([
  ['refund', 'charge.refunded', { metadata: {}, amount_refunded: 500 }],
  ['dispute', 'charge.dispute.funds_withdrawn', { id: 'du_away', amount: 500, currency: 'eur' }],
])('a %s whose book does not reach Redis is to be sent again, and counts then', async (_what, type, fields) => {
  const tenant = await service.startTenant({ credits: 0 });
  const { body } = await buy(service, tenant, { credits: 2_000_000 });
  const checkoutId = String(body.id);
  await callBack(service, eventOf('checkout.session.completed', stripe.paid(checkoutId)));
  const event = eventOf(type, { payment_intent: `pi_${checkoutId}`, ...fields });
  stores.Redis?.set('reset');

  expect(refusalOf(await callBack(service, event))).toMatchObject({ status: 503, code: 'model_unavailable' });

  stores.Redis?.set('pass');
  await heard(event);
  const { shard = -1 } = (await service.models.tenants.findById(tenant.tenantId).lean()) ?? {};
  const book = await service.redis.hget(service.keyspace.shard(shard).account(tenant.tenantId), 'ledgerBalance');
  expect(book).toBe('1000000000000');
  const rows = await service.models.ledger.find({ tenantId: tenant.tenantId }).lean();
  expect(rows).toHaveLength(2);
});
