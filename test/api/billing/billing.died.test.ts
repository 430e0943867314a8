import { expect, it } from '@jest/globals';

import { createPaymentBookings } from '../../../shared/mongo/accounts/payment-bookings.ts';
import { balanceOf, buy } from '../../support/billing.ts';
import { callBack, eventOf } from '../../support/stripe-double.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useStripeShop } from '../../support/use-stripe-shop.ts';

const { service, stripe } = useStripeShop();

it('a payment whose ingress dies once it is booked has its audit line, and is told once', async () => {
  const tenant = await service.startTenant({ credits: 0 });
  const api = apiOf(service, tenant.key);
  await api('post', '/webhooks', { url: 'https://receiver.invalid/hook', events: ['credits.purchased'] });
  const checkoutId = String((await buy(service, tenant, { credits: 2_000_000 })).body.id);
  const event = eventOf('checkout.session.completed', stripe.paid(checkoutId));
  const { tenantId } = tenant;
  // All that the dead ingress did: the commit.
  const { models, mongo } = service;
  const paymentBookings = createPaymentBookings(mongo);
  const notice = { id: event.id, type: event.type };
  await paymentBookings.complete(
    { checkoutId, paymentId: `pi_${checkoutId}` },
    { now: Date.now(), requestId: 'req_died', notice },
  );
  expect(await models.audit.countDocuments({ tenantId, action: 'credits.purchased' })).toBe(1);

  // Stripe has heard nothing, and says it again, at last in another event.
  for (const repeat of [event, event, { ...event, id: `${event.id}_again` }])
    expect((await callBack(service, repeat)).status).toBe(200);

  expect(await balanceOf(service, tenant)).toBe(2_000_000);
  expect(await models.audit.countDocuments({ tenantId, action: 'credits.purchased' })).toBe(1);
  const deliveries = await models.webhookDeliveries.find({ tenantId, type: 'credits.purchased' }).lean();
  expect(deliveries).toHaveLength(1);
});
