import { beforeAll, describe, expect, it } from '@jest/globals';

import { balanceOf, buy, expectRunningBalance, transactionsOf, URLS } from '../../support/billing.ts';
import { chatOf, postChat, requestIdOf } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { startService } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService } from '../../support/use-service.ts';

const PRICES = {
  currency: 'usd',
  price_per_million_credits: 500,
  packages: [
    { id: 'small', name: 'Small', credits: 1_000_000, amount: 450 },
    { id: 'summer', name: 'Summer', credits: 5_000_000, amount: 999, expires_at: 1_700_000_000 },
    { id: 'large', name: 'Large', credits: 10_000_000, amount: 4_000, expires_at: 4_000_000_000 },
  ],
};
const service = useService({ env: { PAYMENTS: 'test' } });
beforeAll(async () => {
  expect((await service.admin('put', '/packages', PRICES)).status).toBe(200);
});

function nextMonth(): number {
  const now = new Date();
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) / 1000;
}

describe('GET /billing', () => {
  it('says what there is, what is held and what is left of the budget', async () => {
    const { key } = await service.startTenant({ credits: 12.5, tenant: { monthly_token_budget: 1_000 } });
    const { status, body } = await apiOf(service, key)('get', '/billing');

    expect(status).toBe(200);
    expect(body).toEqual({
      object: 'billing.status',
      balance: 12.5,
      held: 0,
      available: 12.5,
      currency: 'credits',
      budget: { limit: 1_000, used: 0, remaining: 1_000, resets_at: expect.any(Number) },
    });
    expect(body.budget.resets_at).toBe(nextMonth());
  });

  it('GET /billing has what was just used, settled or not', async () => {
    const { key } = await service.startTenant({ credits: 1_000, tenant: { monthly_token_budget: 10_000 } });
    const { total_tokens: used } = (await postChat(service.app, key, chatOf('Hi'))).body.usage as {
      total_tokens: number;
    };
    const { body } = await apiOf(service, key)('get', '/billing');

    expect(body).toMatchObject({ balance: 1_000 - used, held: 0, available: 1_000 - used });
    expect(body.budget).toMatchObject({ used, remaining: 10_000 - used });
  });

  it('counts from the book while Redis has not loaded it', async () => {
    const { key, tenantId } = await service.startTenant({ credits: 5 });
    const tenant = await service.models.tenants.findById(tenantId).lean();
    await service.redis.del(service.keyspace.shard(tenant?.shard ?? -1).account(tenantId));

    const { body } = await apiOf(service, key)('get', '/billing');
    expect(body).toMatchObject({ balance: 5, available: 5, budget: { limit: null, used: 0, remaining: null } });
  });
});

describe('GET /billing/packages', () => {
  it('lists what is sold, with the price of free amounts', async () => {
    const { key } = await service.startTenant();
    const { body } = await apiOf(service, key)('get', '/billing/packages?order=asc');

    expect(body).toMatchObject({
      ...{ object: 'list', has_more: false, first_id: 'small', last_id: 'large' },
      ...{ currency: 'usd', price_per_million_credits: 500 },
    });
    const [small, ...others] = body.data as object[];
    expect(small).toEqual({
      ...{ id: 'small', object: 'billing.package', created_at: expect.any(Number), name: 'Small' },
      ...{ credits: 1_000_000, amount: 450, currency: 'usd', expires_at: null },
    });
    expect(others).toEqual([expect.objectContaining({ id: 'large', expires_at: 4_000_000_000 })]);
  });
});

describe('POST /billing/checkout', () => {
  it('POST /billing/checkout keeps the price of a package', async () => {
    const tenant = await service.startTenant();
    const { status, body } = await buy(service, tenant, { package_id: 'small' });

    expect(status).toBe(201);
    expect(body).toEqual({
      ...{ id: expect.stringMatching(/^cs_\w{24}$/), object: 'billing.checkout', created_at: expect.any(Number) },
      ...{ status: 'open', payment: 'test', package_id: 'small', credits: 1_000_000, amount: 450, currency: 'usd' },
      ...{ ...URLS, purchase_id: null, expires_at: Number(body.created_at) + 86_400 },
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/platform\/v1\/billing\/test_payment\/cs_\w{24}$/),
    });
    expect((await apiOf(service, tenant.key)('get', `/billing/checkout/${String(body.id)}`)).body).toEqual(body);
  });

  it.each([
    [{ package_id: 'gone' }, 404, 'package_id'],
    [{ package_id: 'summer' }, 400, 'package_id'],
    [{ package_id: 5 }, 400, 'package_id'],
    [{ package_id: { $ne: '' } }, 400, 'package_id'],
    [{ credits: 0 }, 400, 'credits'],
    [{ credits: -5 }, 400, 'credits'],
    [{ credits: 0.5 }, 400, 'credits'],
    [{ credits: '5' }, 400, 'credits'],
    [{ credits: 1.0000001 }, 400, 'credits'],
    [{ credits: 1_000_000_001 }, 400, 'credits'],
    [{}, 400, undefined],
    [{ credits: 5, package_id: 'small' }, 400, undefined],
    [{ credits: 5, success_url: undefined }, 400, 'success_url'],
    [{ credits: 5, success_url: 'javascript:alert(1)' }, 400, 'success_url'],
    [{ credits: 5, success_url: '//shop.test' }, 400, 'success_url'],
    [{ credits: 5, success_url: 'https://shop.test/\r\nX: 1' }, 400, 'success_url'],
    [{ credits: 5, cancel_url: 'ftp://shop.test' }, 400, 'cancel_url'],
    [{ credits: 5, cancel_url: 'https://user:word@shop.test' }, 400, 'cancel_url'],
    [{ credits: 5, cancel_url: `https://shop.test/${'x'.repeat(2_048)}` }, 400, 'cancel_url'],
    [{ credits: 5, tenant_id: 'ten_1' }, 400, 'tenant_id'],
  ])('POST /billing/checkout refuses %j with %d', async (body, status, param) => {
    const tenant = await service.startTenant();
    expect(refusalOf(await buy(service, tenant, body))).toMatchObject({ status, param });
    expect(await service.models.checkouts.countDocuments({ tenantId: tenant.tenantId })).toBe(0);
  });

  it.each([
    [{}, 'The request body must have `package_id` or `credits`.'],
    [{ credits: 5, package_id: 'small' }, 'The request body must have one of `package_id` and `credits`, not both.'],
  ])('says what to change in a checkout of %j', async (body, message) => {
    const tenant = await service.startTenant();
    expect((await buy(service, tenant, body)).body).toMatchObject({ error: { message } });
  });

  it('does not sell a package of an earlier list whose price no card can be charged', async () => {
    const tenant = await service.startTenant();
    await service.admin('put', '/packages', PRICES);
    // 450 is no multiple of 100, so no list that is put today is like this.
    await service.models.priceLists.updateOne({}, { $set: { currency: 'isk' } });

    const { body } = await apiOf(service, tenant.key)('get', '/billing/packages');
    const refused = await buy(service, tenant, { package_id: 'small' });
    await service.admin('put', '/packages', PRICES);

    expect((body.data as { id: string }[]).map(({ id }) => id)).toEqual(['large']);
    expect(refusalOf(refused)).toMatchObject({ status: 400, param: 'package_id' });
    expect(await service.models.checkouts.countDocuments({ tenantId: tenant.tenantId })).toBe(0);
  });

  it('refuses credits that would cost more than can be paid, or make the balance inexact', async () => {
    const tenant = await service.startTenant({ credits: 1_000_000_000 });
    await service.admin('put', '/packages', { ...PRICES, price_per_million_credits: 99_999_999 });
    expect(refusalOf(await buy(service, tenant, { credits: 2_000_000 }))).toMatchObject({ param: 'credits' });
    await service.admin('put', '/packages', { ...PRICES, price_per_million_credits: null });
    expect(refusalOf(await buy(service, tenant, { credits: 5 }))).toMatchObject({ status: 400, param: 'credits' });
    await service.admin('put', '/packages', PRICES);

    for (let step = 0; step < 6; step += 1)
      await service.admin('post', `/tenants/${tenant.tenantId}/credits`, { credits: 1_000_000_000 });
    await service.admin('post', `/tenants/${tenant.tenantId}/credits`, { credits: 999_999_999 });
    expect((await buy(service, tenant, { credits: 1 })).status).toBe(201);
    expect(refusalOf(await buy(service, tenant, { credits: 2 }))).toMatchObject({ status: 400, param: 'credits' });
  });

  it('is 409 where nothing is sold, and nobody can pay there', async () => {
    const closed = await startService({ workers: 0 });
    try {
      const { key } = await closed.startTenant();
      expect(refusalOf(await buy(closed, { key }))).toMatchObject({ status: 409, code: 'conflict' });
      const { body } = await apiOf(closed, key)('get', '/billing/packages');
      expect(body).toMatchObject({ data: [], price_per_million_credits: null });
      for (const path of ['/billing/stripe/webhook', '/billing/test_payment/cs_000000000000000000000000'])
        expect(refusalOf(await apiOf(closed, key)('post', path, {})).status).toBe(404);
    } finally {
      await closed.close();
    }
  });
});

describe('checkouts of a tenant', () => {
  it('are ten a minute, whatever keys they come by', async () => {
    const tenant = await service.startTenant();
    const second = await makeKey(apiOf(service, tenant.key));
    for (let count = 0; count < 10; count += 1) expect((await buy(service, tenant)).status).toBe(201);

    expect(refusalOf(await buy(service, { key: second.value }))).toMatchObject({ status: 429, code: 'rpm_exceeded' });
  });

  it('are removed a month after their end, unless they were paid', async () => {
    const tenant = await service.startTenant();
    const [paid, unpaid] = [await buy(service, tenant), await buy(service, tenant)];

    const answer = await fetch(String(paid.body.url), {
      method: 'POST',
      body: new URLSearchParams({ action: 'pay' }),
      redirect: 'manual',
    });

    expect(answer.status).toBe(303);
    const rows = await service.models.checkouts.find({ tenantId: tenant.tenantId }).lean();
    const removal = (id: unknown) => rows.find(({ _id }) => _id === id)?.removeAt?.getTime();
    expect(removal(paid.body.id)).toBeUndefined();
    expect(Math.floor((removal(unpaid.body.id) ?? 0) / 1_000) * 1_000).toBe(
      Number(unpaid.body.created_at) * 1_000 + 31 * 86_400_000,
    );
  });
});

describe('GET /billing/transactions', () => {
  it('runs with the ledger, whatever is booked at the same time', async () => {
    const tenant = await service.startTenant({ credits: 10_000 });
    const chats = Array.from({ length: 6 }, () => postChat(service.app, tenant.key, chatOf('Hi')));
    const grants = Array.from({ length: 3 }, (_, index) =>
      service.admin('post', `/tenants/${tenant.tenantId}/credits`, { credits: index === 1 ? -7 : 5 }),
    );
    await Promise.all([...chats, ...grants]);

    await expectRunningBalance(service, tenant, 10);
  });

  it('GET /billing/transactions says what each entry is', async () => {
    const tenant = await service.startTenant({ credits: 100 });
    const answer = await postChat(service.app, tenant.key, chatOf('Hi'));
    await service.admin('post', `/tenants/${tenant.tenantId}/credits`, { credits: -1, reason: 'Too much' });
    await expectRunningBalance(service, tenant, 3);

    const all = await transactionsOf(service, tenant);
    expect(all.map(({ type }) => type).toSorted()).toEqual(['adjustment', 'grant', 'usage']);
    expect(all.find(({ type }) => type === 'usage')).toEqual({
      id: requestIdOf(answer).replace('req_', 'txn_'),
      object: 'billing.transaction',
      created_at: expect.any(Number),
      type: 'usage',
      credits: -answer.body.usage.total_tokens,
      balance_after: expect.any(Number),
      request_id: requestIdOf(answer),
      purchase_id: null,
      reason: null,
    });
    expect(all.find(({ type }) => type === 'adjustment')).toMatchObject({ credits: -1, reason: 'Too much' });
  });

  it('is read newest first, of one type or of all, and takes no foreign cursor', async () => {
    const [tenant, other] = [await service.startTenant({ credits: 3 }), await service.startTenant({ credits: 4 })];
    await service.admin('post', `/tenants/${tenant.tenantId}/credits`, { credits: -1 });
    const api = apiOf(service, tenant.key);
    const list = async (query: string) => (await api('get', `/billing/transactions?${query}`)).body.data as object[];

    expect(await list('')).toMatchObject([{ balance_after: 2 }, { balance_after: 3 }]);
    expect(await list('type=grant')).toMatchObject([{ type: 'grant', balance_after: 3 }]);
    expect(refusalOf(await api('get', '/billing/transactions?type=gift'))).toMatchObject({
      status: 400,
      param: 'type',
    });
    const test = await service.startTenant({ key: { mode: 'test' } });
    for (const path of ['/billing/purchases?after=any', '/usage/requests?mode=live&after=any'])
      expect(refusalOf(await apiOf(service, test.key)('get', path))).toMatchObject({ status: 400, param: 'after' });
    const [foreign] = await transactionsOf(service, other);
    const stolen = await api('get', `/billing/transactions?after=${foreign?.id ?? ''}`);
    expect(refusalOf(stolen)).toMatchObject({ status: 400, param: 'after' });
  });

  it('costs nothing with a test key, and shows it neither the balance nor the budget, which are live', async () => {
    const tenant = await service.startTenant({ credits: 50, tenant: { monthly_token_budget: 1_000 } });
    const { value } = await makeKey(apiOf(service, tenant.key), { mode: 'test', scopes: ['chat', 'billing'] });
    await postChat(service.app, value, chatOf('Hi'));
    await expectRunningBalance(service, tenant, 2);
    expect(await balanceOf(service, tenant)).toBe(50);
    const api = apiOf(service, value);
    const budget = { limit: null, used: 0, remaining: null, resets_at: nextMonth() };
    expect((await api('get', '/billing')).body).toMatchObject({ balance: 0, held: 0, available: 0, budget });
    expect((await api('get', '/billing/transactions')).body.data).toMatchObject([{ credits: 0, balance_after: 0 }]);
  });
});
