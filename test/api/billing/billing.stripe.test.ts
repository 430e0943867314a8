import { once } from 'node:events';
import { connect } from 'node:net';

import { beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { balanceOf, buy, expectRunningBalance, transactionsOf, URLS } from '../../support/billing.ts';
import { refusalOf } from '../../support/refusal.ts';
import { callBack, eventOf } from '../../support/stripe-double.ts';
import type { StripeEvent } from '../../support/stripe-double.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useTenantPerTest } from '../../support/use-service.ts';
import { useStripeShop } from '../../support/use-stripe-shop.ts';
import { waitFor } from '../../support/wait-for.ts';

const { service, stripe } = useStripeShop();
let checkoutId: string;
const tenant = useTenantPerTest(service, { credits: 0 });
beforeEach(async () => {
  stripe.refuse(undefined);
  checkoutId = String((await buy(service, tenant, { credits: 2_000_000 })).body.id);
});

function completed(id: string, more: object = {}): StripeEvent {
  return eventOf('checkout.session.completed', stripe.paid(id, more));
}

function refunded(amount: number, more: object = {}): StripeEvent {
  const charge = { payment_intent: `pi_${checkoutId}`, metadata: { checkout_id: checkoutId }, amount_refunded: amount };
  return eventOf('charge.refunded', { object: 'charge', ...charge, ...more });
}

const statusOf = async (id: string) =>
  String((await apiOf(service, tenant.key)('get', `/billing/checkout/${id}`)).body.status);

describe('a checkout', () => {
  it("opens a session that says what is bought, and gives the buyer Stripe's page", async () => {
    const { status, body } = await buy(service, tenant, { credits: 1_000_001 });

    expect(status).toBe(201);
    const session = stripe.sessions.find(({ fields }) => fields['client_reference_id'] === body.id);
    expect(session?.fields).toMatchObject({
      mode: 'payment',
      'metadata[tenant_id]': tenant.tenantId,
      'payment_intent_data[metadata][checkout_id]': body.id,
      'line_items[0][quantity]': '1',
      'line_items[0][price_data][currency]': 'eur',
      // A begun cent is a whole one.
      'line_items[0][price_data][unit_amount]': '501',
      'line_items[0][price_data][product_data][name]': '1,000,001 credits',
      ...URLS,
    });
    expect(body).toMatchObject({
      id: expect.stringMatching(/^cs_[0-9A-Za-z]{24}$/),
      object: 'billing.checkout',
      status: 'open',
      url: `https://checkout.stripe.test/${session?.id ?? ''}`,
      expires_at: session?.expiresAt,
      amount: 501,
      currency: 'eur',
    });
  });

  it('has one session when the answer of Stripe is lost', async () => {
    const before = stripe.sessions.length;
    const calls = stripe.calls();
    stripe.loseNextAnswer();

    expect((await buy(service, tenant)).status).toBe(201);
    expect(stripe.calls()).toBe(calls + 2);
    expect(stripe.sessions).toHaveLength(before + 1);
  });

  it.each([
    [{ status: 400, error: { type: 'invalid_request_error', code: 'amount_too_small' } }, 400, 'credits'],
    [{ status: 401, error: { type: 'invalid_request_error', message: 'Invalid API Key' } }, 503, undefined],
  ])('a checkout that Stripe refuses with %j is %d', async (refusal, status, param) => {
    stripe.refuse(refusal);
    expect(refusalOf(await buy(service, tenant))).toMatchObject({ status, param });
    const [row] = await service.models.checkouts.find({ tenantId: tenant.tenantId }).sort({ createdAt: -1 }).lean();
    expect(row?.status).toBe('failed');
  });
});

describe('a paid session', () => {
  it('credits once, whatever is delivered twice', async () => {
    const event = completed(checkoutId);
    const answers = await Promise.all([callBack(service, event), callBack(service, event), callBack(service, event)]);
    const late = await callBack(service, event);
    const other = await callBack(service, eventOf('checkout.session.async_payment_succeeded', stripe.paid(checkoutId)));

    expect([...answers, late, other].map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
    expect(await transactionsOf(service, tenant)).toEqual([
      expect.objectContaining({
        id: checkoutId.replace('cs_', 'txn_'),
        type: 'purchase',
        credits: 2_000_000,
        balance_after: 2_000_000,
        request_id: null,
        purchase_id: checkoutId.replace('cs_', 'pur_'),
      }),
    ]);
    expect(await statusOf(checkoutId)).toBe('completed');
  });

  it('credits once when two of its events come at the same time', async () => {
    await Promise.all([callBack(service, completed(checkoutId)), callBack(service, completed(checkoutId))]);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
    await expectRunningBalance(service, tenant, 1);
  });

  it('is in the list of purchases and in the audit log', async () => {
    await callBack(service, completed(checkoutId));
    const api = apiOf(service, tenant.key);

    const { body } = await api('get', '/billing/purchases');
    expect(body).toMatchObject({ object: 'list', has_more: false, first_id: checkoutId.replace('cs_', 'pur_') });
    expect(body.data).toEqual([
      expect.objectContaining({
        object: 'billing.purchase',
        checkout_id: checkoutId,
        transaction_id: checkoutId.replace('cs_', 'txn_'),
        credits: 2_000_000,
        amount: 1_000,
        currency: 'eur',
        refunded_amount: 0,
        refunded_credits: 0,
      }),
    ]);
    const log = await api('get', '/compliance/audit_log?limit=2');
    expect((log.body.data as { action: string }[]).map(({ action }) => action)).toEqual([
      'credits.purchased',
      'checkout.created',
    ]);
  });

  it('a paid session counts even when it comes after the end', async () => {
    await callBack(service, eventOf('checkout.session.expired', stripe.paid(checkoutId, { payment_status: 'unpaid' })));
    expect(await statusOf(checkoutId)).toBe('expired');
    await callBack(service, completed(checkoutId));
    expect([await statusOf(checkoutId), await balanceOf(service, tenant)]).toEqual(['completed', 2_000_000]);
  });

  it('credits nothing before the money has come', async () => {
    await callBack(service, completed(checkoutId, { payment_status: 'unpaid' }));
    expect([await statusOf(checkoutId), await balanceOf(service, tenant)]).toEqual(['processing', 0]);

    await callBack(service, { ...completed(checkoutId), type: 'checkout.session.async_payment_succeeded' });
    expect([await statusOf(checkoutId), await balanceOf(service, tenant)]).toEqual(['completed', 2_000_000]);
  });
});

describe('an unpaid session', () => {
  it.each([
    ['checkout.session.expired', 'expired'],
    ['checkout.session.async_payment_failed', 'failed'],
  ])('an unpaid session ends with %s as %s', async (type, status) => {
    expect((await callBack(service, eventOf(type, stripe.paid(checkoutId, { payment_status: 'unpaid' })))).status).toBe(
      200,
    );
    const { body } = await apiOf(service, tenant.key)('get', `/billing/checkout/${checkoutId}`);
    expect(body).toMatchObject({ status, url: null });
  });

  it('is not ended by a late word once it is paid', async () => {
    await callBack(service, completed(checkoutId));
    await callBack(service, eventOf('checkout.session.expired', stripe.paid(checkoutId, { payment_status: 'unpaid' })));
    expect(await statusOf(checkoutId)).toBe('completed');
  });
});

describe('a refund', () => {
  it('takes back what was paid back, once, and in parts', async () => {
    await callBack(service, completed(checkoutId));
    const half = refunded(500);
    const answers = await Promise.all([callBack(service, half), callBack(service, half)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(await balanceOf(service, tenant)).toBe(1_000_000);

    await callBack(service, refunded(1_000, { metadata: {} }));
    // What was paid back in all has not changed, or comes too late.
    await callBack(service, refunded(1_000));
    await callBack(service, refunded(500));

    expect((await transactionsOf(service, tenant)).map(({ type, credits }) => [type, credits])).toEqual([
      ['purchase', 2_000_000],
      ['adjustment', -1_000_000],
      ['adjustment', -1_000_000],
    ]);
    await expectRunningBalance(service, tenant, 3);
    const { body } = await apiOf(service, tenant.key)('get', '/billing/purchases');
    expect(body.data).toEqual([expect.objectContaining({ refunded_amount: 1_000, refunded_credits: 2_000_000 })]);
  });

  it.each(['with', 'without'])('that fails gives the credits back, %s the totals of the charge', async (totals) => {
    const refund = (id: string, amount: number, status: string, type = 'refund.updated') =>
      eventOf(type, { id, object: 'refund', payment_intent: `pi_${checkoutId}`, amount, status });
    const failed = refund('re_1', 1_000, 'failed', 'refund.failed');
    const charge = totals === 'with' ? [refunded(1_000)] : [];
    await callBack(service, completed(checkoutId));
    for (const event of [...charge, refund('re_1', 1_000, 'pending', 'refund.created')]) await callBack(service, event);
    expect(await balanceOf(service, tenant)).toBe(0);
    // A late word about an earlier state changes nothing.
    for (const event of [failed, failed, refund('re_1', 1_000, 'succeeded')])
      expect((await callBack(service, event)).status).toBe(200);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
    for (const event of [...charge, refund('re_2', 500, 'succeeded')]) await callBack(service, event);
    expect(await balanceOf(service, tenant)).toBe(1_000_000);
    await callBack(service, refund('re_2', 500, 'canceled'));
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
    await expectRunningBalance(service, tenant, 5);
  });

  it('that is earlier than its payment is to be sent again', async () => {
    const event = refunded(1_000);
    expect(refusalOf(await callBack(service, event)).status).toBe(409);
    await callBack(service, completed(checkoutId));
    expect((await callBack(service, event)).status).toBe(200);
    expect(await balanceOf(service, tenant)).toBe(0);
  });
});

describe('a callback', () => {
  it.each([
    ['another secret', { secret: 'whsec_other' }],
    ['an old signature', { ageSeconds: 600 }],
  ])('a callback with %s is 400 and changes nothing', async (_what, signed) => {
    const event = completed(checkoutId);
    expect(refusalOf(await callBack(service, event, signed))).toMatchObject({ status: 400, code: 'invalid_request' });
    expect([await statusOf(checkoutId), await balanceOf(service, tenant)]).toEqual(['open', 0]);
    // Nor is its id taken: the real one still counts.
    await callBack(service, event);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
  });

  it.each([
    ['no signature', {}, '{}'],
    ['no body', { 'Stripe-Signature': 't=1,v1=0' }, ''],
    ['a signature of nothing', { 'Stripe-Signature': 'nonsense' }, '{}'],
    ['too much', { 'Stripe-Signature': 't=1,v1=0' }, 'x'.repeat(300_000)],
  ])('a callback with %s is 400', async (_what, headers, body) => {
    const response = await request(service.app)
      .post('/platform/v1/billing/stripe/webhook')
      .set(headers)
      .type('json')
      .send(body);
    expect(refusalOf(response).status).toBe(400);
  });

  it('strangers who send without an end are refused, and hold no more than they may', async () => {
    const { hostname, port } = new URL(service.url);
    const begun = Array.from({ length: 40 }, () => {
      const socket = connect(Number(port), hostname);
      const heads = ['Host: parley.test', 'Stripe-Signature: t=1,v1=0', 'Content-Length: 262144'];
      socket.on('error', () => undefined);
      socket.write(`POST /platform/v1/billing/stripe/webhook HTTP/1.1\r\n${heads.join('\r\n')}\r\n\r\n`);
      socket.write('x'.repeat(262_000));
      return socket;
    });
    const statuses = begun.map(async (socket) => String(await once(socket, 'data')).slice(9, 12));
    // 8 MiB of an address are 32 of these bodies; the others are answered when their connections have stalled.
    const refused = await Promise.any(statuses);
    for (const socket of begun) socket.destroy();
    expect(refused).toBe('503');

    const isHeard = async () => (await callBack(service, completed(checkoutId))).status === 200 || undefined;
    await waitFor(isHeard, 'room');
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
  });

  it('a callback about what is not ours is heard', async () => {
    const strangers = [
      eventOf('customer.created', { object: 'customer' }),
      completed('cs_000000000000000000000000'),
      completed('order 5'),
      eventOf('charge.refunded', { payment_intent: 'pi_other', metadata: {}, amount_refunded: 5 }),
    ];
    for (const event of strangers) expect((await callBack(service, event)).body).toEqual({ received: true });
  });

  it('a callback is the only method of its path', async () => {
    expect(refusalOf(await request(service.app).get('/platform/v1/billing/stripe/webhook')).status).toBe(405);
  });
});
