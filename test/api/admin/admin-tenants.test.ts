import { afterEach, describe, expect, it } from '@jest/globals';

import { ACCESS_CHANNEL } from '../../../shared/redis/keyspace.ts';
import { errorOf } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';
const admin = useAdmin();
afterEach(() => {
  expect(admin.errors).toEqual([]);
});

interface Tenant {
  id: string;
  created_at: number;
}

async function create(body: object = { name: 'School' }): Promise<Tenant> {
  const response = await admin.call('post', '/admin/v1/tenants', body);
  expect(response.status).toBe(201);
  return response.body as Tenant;
}

/** The flag that admission looks at, on the tenant's own shard. */
async function isBlocked(id: string): Promise<boolean> {
  const row = await admin.models.tenants.findById(id).lean();
  return (await admin.redis.exists(admin.keyspace.shard(row?.shard ?? -1).blocked(id))) === 1;
}

describe('a tenant that is made with a name alone', () => {
  it('a tenant that is made with a name alone has the defaults of the interface', async () => {
    const tenant = await create();
    expect(tenant).toEqual({
      id: expect.stringMatching(/^ten_[0-9A-Za-z]{24}$/),
      object: 'tenant',
      shard: expect.any(Number),
      created_at: Math.floor(admin.clock.now() / 1000),
      name: 'School',
      status: 'active',
      default_model: 'mobius',
      rpm: 60,
      tpm: 100_000,
      daily_requests: 0,
      chat_rpm: 120,
      stream_rpm: 60,
      tenant_rpm: 6_000,
      tenant_tpm: 10_000_000,
      max_in_flight: 1_000,
      weight: 1,
      monthly_token_budget: null,
      test_daily_tokens: 1_000_000,
      subject: null,
      grade: null,
      on_disconnect: 'cancel',
      retention_seconds: null,
      moderation: null,
      balance: 0,
      held: 0,
      available: 0,
    });
  });

  it('has an account, so that its first request finds a book', async () => {
    const { id } = await create();
    expect(await admin.models.accounts.findById(id).lean()).toMatchObject({ balanceMicro: 0, version: 0 });
  });
});

describe('a tenant that is made with every setting', () => {
  const settings = {
    name: 'Everything',
    default_model: 'oloid',
    rpm: 1,
    tpm: 2,
    daily_requests: 3,
    chat_rpm: 4,
    stream_rpm: 5,
    monthly_token_budget: 6,
    subject: 'physics',
    grade: '7',
    on_disconnect: 'finish',
    moderation: { thresholds: { violence: 0.5 } },
    test_daily_tokens: 7,
  };

  it('a tenant that is made with every setting keeps all of them', async () => {
    const { id } = await create({ ...settings, credits: 12.345678 });
    const response = await admin.call('get', `/admin/v1/tenants/${id}`);
    expect(response.body).toMatchObject({ ...settings, balance: 12.345678, held: 0, available: 12.345678 });
  });

  it('has its credits in the ledger, in the book and in Redis', async () => {
    const { id } = await create({ name: 'Credits', credits: 100 });
    const row = await admin.models.tenants.findById(id).lean();
    const account = admin.keyspace.shard(row?.shard ?? -1).account(id);
    expect(await admin.models.ledger.find({ tenantId: id }).lean()).toMatchObject([
      { type: 'grant', amountMicro: 100_000_000 },
    ]);
    expect(await admin.models.accounts.findById(id).lean()).toMatchObject({ balanceMicro: 100_000_000 });
    expect(await admin.redis.hget(account, 'ledgerBalance')).toBe('100000000');
  });
});

it('what running and unsettled requests take is not shown as available', async () => {
  const { id } = await create({ name: 'Busy', credits: 10 });
  const row = await admin.models.tenants.findById(id).lean();
  const account = admin.keyspace.shard(row?.shard ?? -1).account(id);
  await admin.redis.hset(account, { pending: '2000000', held: '3000000' });
  const response = await admin.call('get', `/admin/v1/tenants/${id}`);
  expect(response.body).toMatchObject({ balance: 8, held: 3, available: 5 });
});

describe('a setting that is wrong', () => {
  it.each([
    ['name', { name: '' }],
    ['name', { name: 5 }],
    ['name', { name: null }],
    ['name', { name: 'x'.repeat(257) }],
    ['name', { name: 'half \ud800' }],
    ['default_model', { default_model: 'gpt' }],
    ['rpm', { rpm: 0 }],
    ['rpm', { rpm: 1.5 }],
    ['rpm', { rpm: '60' }],
    ['rpm', { rpm: null }],
    ['tpm', { tpm: -1 }],
    ['chat_rpm', { chat_rpm: 0 }],
    ['stream_rpm', { stream_rpm: 0 }],
    ['daily_requests', { daily_requests: -1 }],
    ['monthly_token_budget', { monthly_token_budget: 0 }],
    ['test_daily_tokens', { test_daily_tokens: true }],
    ['credits', { credits: -1 }],
    ['credits', { credits: 0.0000001 }],
    ['credits', { credits: 1.2345678 }],
    ['credits', { credits: 1_000_000_001 }],
    ['credits', { credits: '5' }],
    ['subject', { subject: [] }],
    ['grade', { grade: 7 }],
    ['on_disconnect', { on_disconnect: 'later' }],
    ['moderation', { moderation: [] }],
    ['moderation', { moderation: { thresholds: { 'a\0b': 0.5 } } }],
    ['moderation', { moderation: { thresholds: { $where: 0.5 } } }],
    ['moderation.thresholds.violence', { moderation: { thresholds: { violence: 2 } } }],
    ['status', { status: 'suspended' }],
    ['shard', { shard: 1 }],
    ['colour', { colour: 'red' }],
  ])('a setting that is wrong is refused at creation and named: %s %j', async (param, fields) => {
    const response = await admin.call('post', '/admin/v1/tenants', { name: 'x', ...fields });
    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
    expect(String(errorOf(response)['message'])).toContain(param);
  });

  it.each([
    ['rpm', { rpm: 0 }],
    ['status', { status: 'deleted' }],
    ['credits', { credits: 5 }],
    ['id', { id: 'ten_0' }],
  ])('a setting that is wrong is refused in a change and named: %s', async (param, fields) => {
    const { id } = await create();
    const response = await admin.call('patch', `/admin/v1/tenants/${id}`, fields);
    expect(response.status).toBe(400);
    expect(errorOf(response)['param']).toBe(param);
  });

  it('a setting that is wrong leaves nothing behind', async () => {
    const before = await admin.models.tenants.countDocuments();
    await admin.call('post', '/admin/v1/tenants', { name: 'x', rpm: 0 });
    expect(await admin.models.tenants.countDocuments()).toBe(before);
  });
});

describe('a change', () => {
  it('a change touches only the settings that are sent', async () => {
    const { id } = await create({ name: 'Before', subject: 'art', rpm: 10 });
    const response = await admin.call('patch', `/admin/v1/tenants/${id}`, { rpm: 20 });
    expect(response.body).toMatchObject({ name: 'Before', subject: 'art', rpm: 20 });
  });

  it('a change with null takes optional settings away', async () => {
    const settings = { subject: 'art', grade: '7', monthly_token_budget: 5, moderation: { thresholds: { hate: 1 } } };
    const { id } = await create({ name: 'Full', ...settings });
    const nulls = { subject: null, grade: null, monthly_token_budget: null, moderation: null };
    const response = await admin.call('patch', `/admin/v1/tenants/${id}`, nulls);
    expect(response.body).toMatchObject(nulls);
  });

  it('a change without a field changes nothing', async () => {
    const tenant = await create();
    const response = await admin.call('patch', `/admin/v1/tenants/${tenant.id}`, {});
    expect(response.status).toBe(200);
    expect(response.body).toEqual(tenant);
  });
});

describe('a suspension', () => {
  it('counts in Redis before it is answered, and a reactivation takes it back', async () => {
    const { id } = await create();
    const suspended = await admin.call('patch', `/admin/v1/tenants/${id}`, { status: 'suspended' });
    expect(suspended.body).toMatchObject({ status: 'suspended' });
    expect(await isBlocked(id)).toBe(true);
    const active = await admin.call('patch', `/admin/v1/tenants/${id}`, { status: 'active' });
    expect(active.body).toMatchObject({ status: 'active' });
    expect(await isBlocked(id)).toBe(false);
  });

  it('is flagged for longer than any cache lives', async () => {
    const { id } = await create();
    await admin.call('patch', `/admin/v1/tenants/${id}`, { status: 'suspended' });
    const row = await admin.models.tenants.findById(id).lean();
    const ttl = await admin.redis.ttl(admin.keyspace.shard(row?.shard ?? -1).blocked(id));
    expect(ttl).toBeGreaterThan(15 * 60);
  });

  it('and a reactivation at the same time leave the flag that the row ends with', async () => {
    const { id } = await create();
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(
        ['suspended', 'active', 'suspended', 'active'].map((status) =>
          admin.call('patch', `/admin/v1/tenants/${id}`, { status }),
        ),
      );
      const row = await admin.models.tenants.findById(id).lean();
      expect(await isBlocked(id)).toBe(row?.status === 'suspended');
    }
  });

  it('and every other change is announced to the ingresses', async () => {
    const { id } = await create();
    const subscriber = await admin.subscribe();
    const heard = new Promise<void>((resolve) => {
      let left = 3;
      subscriber.on('message', (_channel: string, message: string) => {
        if (message === id && --left === 0) resolve();
      });
    });
    await subscriber.subscribe(ACCESS_CHANNEL);
    await admin.call('patch', `/admin/v1/tenants/${id}`, { rpm: 5 });
    await admin.call('patch', `/admin/v1/tenants/${id}`, { status: 'suspended' });
    await admin.call('patch', `/admin/v1/tenants/${id}`, { status: 'active' });
    await heard;
  });
});

describe('a tenant that does not exist', () => {
  it.each(['ten_000000000000000000000000', 'ten_1', 'nonsense', '%00', 'ten_00000000000000000000000%00', '[$ne]'])(
    'a tenant that does not exist is 404: %s',
    async (id) => {
      for (const method of ['get', 'patch'] as const) {
        const response = await admin.call(method, `/admin/v1/tenants/${id}`, method === 'patch' ? {} : undefined);
        expect(response.status).toBe(404);
        expect(errorOf(response)['code']).toBe('not_found');
      }
    },
  );
});

describe('the list', () => {
  it('finds tenants by a part of their names, which may have any character', async () => {
    const { id } = await create({ name: 'Lakeside (North) School' });

    const { body } = await admin.call('get', '/admin/v1/tenants?name=side%20(north');

    expect((body as unknown as { data: Tenant[] }).data.map((tenant) => tenant.id)).toEqual([id]);
    expect((await admin.call('get', '/admin/v1/tenants?name=side.*north')).body.data).toEqual([]);
  });

  it('refuses a parameter that it does not know', async () => {
    const response = await admin.call('get', '/admin/v1/tenants?nmae=Lakeside');

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param: 'nmae' });
  });

  it('gives every tenant once, newest first, over pages that meet', async () => {
    for (let index = 0; index < 5; index += 1) await create({ name: `Listed ${index}` });
    const expected = await admin.models.tenants.find({}, { _id: 1 }).sort({ createdAt: -1, _id: -1 }).lean();
    const seen: string[] = [];
    let path = '/admin/v1/tenants?limit=7';
    for (;;) {
      const { body } = await admin.call('get', path);
      const ids = (body.data as Tenant[]).map((tenant) => tenant.id);
      expect(body).toMatchObject({ object: 'list', first_id: ids[0], last_id: ids.at(-1) });
      seen.push(...ids);
      if (body.has_more !== true) break;
      path = `/admin/v1/tenants?limit=7&after=${String(body.last_id)}`;
    }
    expect(seen).toEqual(expected.map((row) => row._id));
  });
});
