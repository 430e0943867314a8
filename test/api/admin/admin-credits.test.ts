import { afterEach, describe, expect, it } from '@jest/globals';

import { errorOf } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';
const admin = useAdmin();
afterEach(() => {
  expect(admin.errors).toEqual([]);
});

async function createTenant(credits = 0): Promise<string> {
  const response = await admin.call('post', '/admin/v1/tenants', { name: 'School', credits });
  return (response.body as { id: string }).id;
}

const book = (id: string, body: object) => admin.call('post', `/admin/v1/tenants/${id}/credits`, body);

async function ledgerSum(tenantId: string): Promise<number> {
  const rows = await admin.models.ledger.find({ tenantId }).lean();
  return rows.reduce((sum, row) => sum + row.amountMicro, 0);
}

it('a positive amount is a grant that counts at once in MongoDB and Redis', async () => {
  const id = await createTenant(1);
  const response = await book(id, { credits: 2.5, reason: 'Welcome' });
  expect(response.status).toBe(201);
  expect(response.body).toEqual({
    id: expect.stringMatching(/^txn_[0-9A-Za-z]{24}$/),
    object: 'transaction',
    created_at: Math.floor(admin.clock.now() / 1000),
    type: 'grant',
    credits: 2.5,
    balance_after: 3.5,
    reason: 'Welcome',
  });
  const tenant = await admin.models.tenants.findById(id).lean();
  expect(await admin.redis.hget(admin.keyspace.shard(tenant?.shard ?? -1).account(id), 'ledgerBalance')).toBe(
    '3500000',
  );
  expect(await ledgerSum(id)).toBe(3_500_000);
});

it('a negative amount is an adjustment and may leave a debt', async () => {
  const id = await createTenant(1);
  const response = await book(id, { credits: -1.000001, reason: 'Refund' });
  expect(response.body).toMatchObject({ type: 'adjustment', credits: -1.000001, balance_after: -0.000001 });
  const tenant = await admin.call('get', `/admin/v1/tenants/${id}`);
  expect(tenant.body).toMatchObject({ balance: -0.000001, available: -0.000001 });
});

it('concurrent bookings all count', async () => {
  const id = await createTenant();
  await Promise.all(Array.from({ length: 10 }, () => book(id, { credits: 1, reason: 'Each' })));
  const tenant = await admin.call('get', `/admin/v1/tenants/${id}`);
  expect(tenant.body).toMatchObject({ balance: 10 });
  expect(await ledgerSum(id)).toBe(10_000_000);
});

it('the largest amounts are exact', async () => {
  const id = await createTenant(1_000_000_000);
  const response = await book(id, { credits: 999_999_999.999999 });
  expect(response.body).toMatchObject({ balance_after: 1_999_999_999.999999, reason: '' });
});

it('a balance that could not be exact is refused', async () => {
  const id = await createTenant(1_000_000_000);
  for (let step = 0; step < 7; step += 1) expect((await book(id, { credits: 1_000_000_000 })).status).toBe(201);
  const response = await book(id, { credits: 0.000001 });
  expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param: 'credits' });
});

describe('a booking under an Idempotency-Key', () => {
  const bookAs = (id: string, key: string, body: object) =>
    admin.call('post', `/admin/v1/tenants/${id}/credits`, body, { 'Idempotency-Key': key });

  it('is booked once, however often and however late it comes, and is answered as it was', async () => {
    const id = await createTenant();
    const grant = { credits: 5, reason: 'Welcome' };
    const answers = await Promise.all(Array.from({ length: 4 }, () => bookAs(id, 'welcome', grant)));
    await book(id, { credits: 1 });
    admin.clock.advance(48 * 3_600_000);
    answers.push(await bookAs(id, 'welcome', grant));

    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(answers.at(-1)?.headers['idempotent-replayed']).toBe('true');
    expect(await ledgerSum(id)).toBe(6_000_000);
    expect(await admin.models.audit.countDocuments({ tenantId: id, action: 'credits.granted' })).toBe(2);
  });

  it('has its audit line and its book in Redis though the first call died once it was booked', async () => {
    const id = await createTenant();
    await bookAs(id, 'died', { credits: 5 });
    await admin.models.audit.deleteMany({ tenantId: id });
    const tenant = await admin.models.tenants.findById(id).lean();
    const account = admin.keyspace.shard(tenant?.shard ?? -1).account(id);
    await admin.redis.del(account);

    expect((await bookAs(id, 'died', { credits: 5 })).status).toBe(201);
    expect(await admin.models.audit.countDocuments({ tenantId: id, action: 'credits.granted' })).toBe(1);
    expect(await admin.redis.hget(account, 'ledgerBalance')).toBe('5000000');
  });

  it('is 422 for other credits, and another booking for another tenant', async () => {
    const [id, other] = [await createTenant(), await createTenant()];
    await bookAs(id, 'same', { credits: 5 });
    expect(errorOf(await bookAs(id, 'same', { credits: 6 }))).toMatchObject({ code: 'idempotency_mismatch' });
    expect((await bookAs(other, 'same', { credits: 6 })).status).toBe(201);
    expect([await ledgerSum(id), await ledgerSum(other)]).toEqual([5_000_000, 6_000_000]);
  });
});

describe('a booking', () => {
  it.each([
    ['credits', {}],
    ['credits', { credits: 0 }],
    ['credits', { credits: '1' }],
    ['credits', { credits: null }],
    ['credits', { credits: 1.0000001 }],
    ['credits', { credits: 2_000_000_000 }],
    ['reason', { credits: 1, reason: 5 }],
    ['reason', { credits: 1, reason: 'x'.repeat(501) }],
    ['type', { credits: 1, type: 'purchase' }],
  ])('a booking is refused with the field named: %s %j', async (param, body) => {
    const id = await createTenant();
    const response = await book(id, body);
    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
    expect(await ledgerSum(id)).toBe(0);
  });

  it('for a tenant that does not exist is 404 and leaves no ledger entry', async () => {
    const id = 'ten_000000000000000000000000';
    expect((await book(id, { credits: 1 })).status).toBe(404);
    expect(await admin.models.ledger.countDocuments({ tenantId: id })).toBe(0);
  });
});
