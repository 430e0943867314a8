import { beforeEach, describe, expect, it } from '@jest/globals';

import { balanceOf, buy } from '../../support/billing.ts';
import { refusalOf } from '../../support/refusal.ts';
import { callBack, callBackWith, eventOf } from '../../support/stripe-double.ts';
import { useTenantPerTest } from '../../support/use-service.ts';
import { useStripeShop } from '../../support/use-stripe-shop.ts';

const { service, stripe } = useStripeShop();
let checkoutId: string;
const tenant = useTenantPerTest(service, { credits: 0 });
beforeEach(async () => {
  checkoutId = String((await buy(service, tenant, { credits: 2_000_000 })).body.id);
});

const COMPLETED = 'checkout.session.completed';

/** What a dispute that takes half of the price says. */
const DISPUTE = { object: 'dispute', id: 'dp_1', amount: 500, currency: 'eur' };

/** Other versions of Stripe's API leave fields out, or expand them. */
describe('a signed callback that leaves fields out', () => {
  it('of a session without payment_intent books what is paid', async () => {
    const answer = await callBack(service, eventOf(COMPLETED, stripe.paid(checkoutId, { payment_intent: undefined })));

    expect(answer.body).toEqual({ received: true });
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
  });

  it.each<[string, (id: string) => object]>([
    ['metadata', (id) => ({ object: 'charge', payment_intent: `pi_${id}`, amount_refunded: 500 })],
    ['payment_intent', (id) => ({ object: 'charge', metadata: { checkout_id: id }, amount_refunded: 500 })],
  ])('of a charge without %s takes back what was refunded', async (_field, charge) => {
    await callBack(service, eventOf(COMPLETED, stripe.paid(checkoutId, { payment_intent: `pi_${checkoutId}` })));

    const answer = await callBack(service, eventOf('charge.refunded', charge(checkoutId)));

    expect(answer.body).toEqual({ received: true });
    expect(await balanceOf(service, tenant)).toBe(1_000_000);
  });

  it.each<[string, string, object]>([
    ['a refund without an amount', 'charge.refunded', { object: 'charge', metadata: {} }],
    ['a refund without a status', 'refund.updated', { object: 'refund', id: 're_1', amount: 500 }],
    ['a dispute without an amount', 'charge.dispute.funds_withdrawn', { ...DISPUTE, amount: undefined }],
    ['a dispute without a currency', 'charge.dispute.funds_withdrawn', { ...DISPUTE, currency: undefined }],
    ['a dispute without an id', 'charge.dispute.funds_reinstated', { ...DISPUTE, id: undefined }],
  ])('%s is refused, so that Stripe shows the operator', async (_what, type, object) => {
    await callBack(service, eventOf(COMPLETED, stripe.paid(checkoutId, { payment_intent: `pi_${checkoutId}` })));

    const answer = await callBack(service, eventOf(type, { payment_intent: `pi_${checkoutId}`, ...object }));

    expect(refusalOf(answer)).toMatchObject({ status: 400, code: 'invalid_request' });
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
  });
});

it.each([
  ['null', 'null'],
  ['a list', '[]'],
  ['no JSON', '{bad'],
  ['an event without data', '{"id":"evt_1","object":"event","type":"charge.refunded"}'],
  ['an event whose object is null', '{"id":"evt_1","object":"event","type":"a.b","data":{"object":null}}'],
  ['an event without an id', '{"object":"event","type":"a.b","data":{"object":{}}}'],
  [
    'a thin event',
    '{"id":"evt_1","object":"v2.core.event","type":"v1.charge.refunded","related_object":{"id":"ch_1"}}',
  ],
])('a signed callback that is %s is told to be a snapshot event', async (_what, payload) => {
  const answer = await callBackWith(service, payload);

  expect(refusalOf(answer)).toMatchObject({
    status: 400,
    code: 'invalid_request',
    message: 'The callback must be an event of Stripe with its object; choose snapshot payloads for this endpoint.',
  });
});
