import { beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { balanceOf, buy, expectRunningBalance, URLS } from '../../support/billing.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { expectUniformHeaders, refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useTenantPerTest } from '../../support/use-service.ts';
const service = useService({ env: { PAYMENTS: 'test' } });
let checkoutId: string;
/** The page's path. */
let page: string;
const tenant = useTenantPerTest(service, { credits: 0 });
beforeEach(async () => {
  const { body } = await buy(service, tenant, { credits: 2_000_000 });
  checkoutId = String(body.id);
  page = new URL(String(body.url)).pathname;
});

const press = (action: string) => request(service.app).post(page).type('form').send({ action });
const statusOf = async () =>
  String((await apiOf(service, tenant.key)('get', `/billing/checkout/${checkoutId}`)).body.status);

describe('the test payment page', () => {
  it('is a plain form that nothing else can frame, script or send elsewhere', async () => {
    const response = await request(service.app).get(page);

    expect(response.status).toBe(200);
    expectUniformHeaders(response);
    expect(response.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; " +
        "form-action 'self' https://shop.test http://shop.test:8080; base-uri 'none'; frame-ancestors 'none'",
    });
    expect(response.text).toContain('2,000,000 credits for $10.00');
    expect(response.text).toContain('<form method="post">');
    expect(response.text).not.toContain('<script');
  });

  it('credits what was bought and sends the buyer back; then chat is paid by it', async () => {
    expect((await postChat(service.app, tenant.key, chatOf('Hi'))).status).toBe(402);

    const paid = await press('pay');
    expect(paid.status).toBe(303);
    expect(paid.headers['location']).toBe(URLS.success_url);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
    expect(await statusOf()).toBe('completed');

    expect((await postChat(service.app, tenant.key, chatOf('Hi'))).status).toBe(200);
    await expectRunningBalance(service, tenant, 2);
  });

  it('credits once when the button is pressed many times', async () => {
    const pressed = await Promise.all([press('pay'), press('pay'), press('pay')]);
    pressed.push(await press('pay'));

    expect(pressed.map(({ status }) => status)).toEqual([303, 303, 303, 303]);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
    await expectRunningBalance(service, tenant, 1);
  });

  it('credits nothing when it is cancelled, then or later', async () => {
    const cancelled = await press('cancel');
    expect([cancelled.status, cancelled.headers['location']]).toEqual([303, URLS.cancel_url]);
    expect((await press('cancel')).status).toBe(303);

    const late = await press('pay');
    expect(late.status).toBe(409);
    expect(late.text).toContain('This checkout was cancelled.');
    expect([await statusOf(), await balanceOf(service, tenant)]).toEqual(['cancelled', 0]);
  });

  it('the test payment page cannot be cancelled once it is paid', async () => {
    await press('pay');
    expect((await press('cancel')).status).toBe(409);
    expect((await request(service.app).get(page)).text).not.toContain('<form');
    expect([await statusOf(), await balanceOf(service, tenant)]).toEqual(['completed', 2_000_000]);
  });

  it('has exactly one outcome when both buttons are pressed at once', async () => {
    const [pay, cancel] = await Promise.all([press('pay'), press('cancel')]);
    const isPaid = (await statusOf()) === 'completed';
    expect([pay.status, cancel.status]).toEqual(isPaid ? [303, 409] : [409, 303]);
    expect(await balanceOf(service, tenant)).toBe(isPaid ? 2_000_000 : 0);
  });

  it('the test payment page credits nothing when its time is over', async () => {
    await service.models.checkouts.updateOne({ _id: checkoutId }, { $set: { expiresAt: Date.now() - 1 } });

    const late = await press('pay');
    expect(late.status).toBe(409);
    expect(late.text).toContain('This checkout has expired.');
    expect([await statusOf(), await balanceOf(service, tenant)]).toEqual(['expired', 0]);
  });

  it.each([['steal'], ['']])('the test payment page refuses the action %j', async (action) => {
    expect(refusalOf(await press(action))).toMatchObject({ status: 400, param: 'action' });
    expect(await statusOf()).toBe('open');
  });

  it.each(['cs_000000000000000000000000', 'cs_1', '%00'])('the test payment page is 404 for %s', async (id) => {
    const url = `/platform/v1/billing/test_payment/${id}`;
    expect(refusalOf(await request(service.app).get(url)).status).toBe(404);
    expect(refusalOf(await request(service.app).post(url).type('form').send({ action: 'pay' })).status).toBe(404);
  });
});
