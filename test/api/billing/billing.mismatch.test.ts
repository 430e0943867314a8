import { beforeEach, expect, it } from '@jest/globals';

import { balanceOf, buy, transactionsOf } from '../../support/billing.ts';
import { callBack, eventOf } from '../../support/stripe-double.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useTenantPerTest } from '../../support/use-service.ts';
import { useStripeShop } from '../../support/use-stripe-shop.ts';

const { service, stripe } = useStripeShop();
let checkoutId: string;
const tenant = useTenantPerTest(service, { credits: 0 });
beforeEach(async () => {
  checkoutId = String((await buy(service, tenant, { credits: 2_000_000 })).body.id);
});

async function mismatches(reason: string): Promise<number> {
  const line = new RegExp(`^parley_payment_mismatches_total\\{reason="${reason}".*\\} (\\d+)$`, 'm');
  return Number(line.exec(await service.metrics())?.[1] ?? 0);
}

const statusOf = async () =>
  String((await apiOf(service, tenant.key)('get', `/billing/checkout/${checkoutId}`)).body.status);

const COMPLETED = 'checkout.session.completed';
const SUCCEEDED = 'checkout.session.async_payment_succeeded';

it.each<[string, string, object, string]>([
  ['a smaller amount', COMPLETED, { amount_total: 100 }, 'amount'],
  ['a larger amount', COMPLETED, { amount_total: 1_001 }, 'amount'],
  ['no amount', COMPLETED, { amount_total: null }, 'amount'],
  ['another currency', COMPLETED, { currency: 'huf' }, 'currency'],
  ['no currency', COMPLETED, { currency: null }, 'currency'],
  ['nothing to pay', COMPLETED, { payment_status: 'no_payment_required', amount_total: 0 }, 'status'],
  ['a late payment that is still unpaid', SUCCEEDED, { payment_status: 'unpaid' }, 'status'],
  ['a late payment with nothing to pay', SUCCEEDED, { payment_status: 'no_payment_required' }, 'status'],
  ['another session', COMPLETED, { id: 'cs_live_of_a_payment_link' }, 'session'],
  ['no metadata, as a payment link has it', COMPLETED, { metadata: {} }, 'checkout'],
  ['metadata that is null', COMPLETED, { metadata: null }, 'checkout'],
  ['metadata of another checkout', COMPLETED, { metadata: { checkout_id: 'cs_000000000000000000000000' } }, 'checkout'],
  ['no client_reference_id', COMPLETED, { client_reference_id: null }, 'checkout'],
  ['a subscription', COMPLETED, { mode: 'subscription' }, 'mode'],
  ['a session of live mode under a test key', COMPLETED, { livemode: true }, 'livemode'],
])('a paid notice with %s books nothing, and the operator hears of it', async (_what, type, more, reason) => {
  const [before, errors] = [await mismatches(reason), service.log.errors().length];

  const answer = await callBack(service, eventOf(type, stripe.paid(checkoutId, more)));

  expect(answer.status).toBe(200);
  expect([await balanceOf(service, tenant), await transactionsOf(service, tenant)]).toEqual([0, []]);
  expect(await statusOf()).toBe('open');
  expect(await mismatches(reason)).toBe(before + 1);
  expect(service.log.errors().slice(errors)).toEqual([expect.stringContaining(checkoutId)]);

  // The right one still counts.
  await callBack(service, eventOf(COMPLETED, stripe.paid(checkoutId)));
  expect(await balanceOf(service, tenant)).toBe(2_000_000);
});

it.each([
  ['expired', 'checkout.session.expired'],
  ['failed', 'checkout.session.async_payment_failed'],
  ['unpaid', COMPLETED],
])("a stranger's session that is %s does not change the checkout", async (_what, type) => {
  const unpaid = { payment_status: 'unpaid' };
  await callBack(service, eventOf(type, stripe.paid(checkoutId, { ...unpaid, metadata: {} })));
  await callBack(service, eventOf(type, stripe.paid(checkoutId, { ...unpaid, id: 'cs_live_other' })));
  expect(await statusOf()).toBe('open');
});

it('asks Stripe for the price in our currency, because that is what is compared', () => {
  expect(stripe.sessions.at(-1)?.fields).toMatchObject({ 'adaptive_pricing[enabled]': 'false' });
});
