import { afterEach, describe, expect, it } from '@jest/globals';

import { errorOf } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';
const admin = useAdmin();
afterEach(() => {
  expect(admin.errors).toEqual([]);
});

interface Key {
  id: string;
  value: string;
  status: string;
}

async function createTenant(settings: object = {}): Promise<string> {
  const response = await admin.call('post', '/admin/v1/tenants', { name: 'School', ...settings });
  return (response.body as { id: string }).id;
}

async function createKey(tenantId: string, body: object = {}): Promise<Key> {
  const response = await admin.call('post', `/admin/v1/tenants/${tenantId}/keys`, body);
  expect(response.status).toBe(201);
  return response.body as Key;
}

describe('a new key', () => {
  it('has the defaults: live, every scope, the limits of its tenant, no end', async () => {
    const tenantId = await createTenant({ rpm: 10, tpm: 20, daily_requests: 30 });
    expect(await createKey(tenantId)).toEqual({
      id: expect.stringMatching(/^key_[0-9A-Za-z]{24}$/),
      object: 'api_key',
      created_at: Math.floor(admin.clock.now() / 1000),
      name: '',
      mode: 'live',
      scopes: ['*'],
      status: 'active',
      limits: { rpm: 10, tpm: 20, daily_requests: 30 },
      expires_at: null,
      last_used_at: null,
      redacted_value: expect.stringMatching(/^svc_sk_live_….{4}$/),
      previous_value_expires_at: null,
      value: expect.stringMatching(/^svc_sk_live_[0-9A-Za-z]{32}$/),
    });
  });
});

describe('the limit of 100 active keys', () => {
  async function fill(tenantId: string, count: number): Promise<void> {
    const rows = Array.from({ length: count }, (_, index) => ({
      _id: `key_${tenantId.slice(4, 20)}${String(index).padStart(8, '0')}`,
      tenantId,
      hash: `${tenantId}:${index}`,
      redactedValue: 'svc_sk_live_…0000',
      name: 'filler',
      mode: 'live' as const,
      scopes: ['*'],
      status: 'active' as const,
      createdAt: index,
    }));
    await admin.models.keys.insertMany(rows);
  }

  it('the limit of 100 active keys is exact under concurrent creations', async () => {
    const tenantId = await createTenant();
    await fill(tenantId, 97);
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => admin.call('post', `/admin/v1/tenants/${tenantId}/keys`, {})),
    );
    expect(responses.map((response) => response.status).toSorted()).toEqual([201, 201, 201, 409, 409, 409, 409, 409]);
    expect(await admin.models.keys.countDocuments({ tenantId })).toBe(100);
  });

  it('does not count keys that were revoked or have expired', async () => {
    const tenantId = await createTenant();
    await fill(tenantId, 98);
    const { id } = await createKey(tenantId);
    await createKey(tenantId, { expires_in_seconds: 1 });
    const refused = await admin.call('post', `/admin/v1/tenants/${tenantId}/keys`, {});
    expect(errorOf(refused)['code']).toBe('conflict');
    await admin.call('delete', `/admin/v1/tenants/${tenantId}/keys/${id}`);
    admin.clock.advance(1_000);
    await createKey(tenantId);
    await createKey(tenantId);
  });
});

describe('a revoked key', () => {
  it('is flagged in Redis before the answer and stays in the list', async () => {
    const tenantId = await createTenant();
    const { id } = await createKey(tenantId);
    const response = await admin.call('delete', `/admin/v1/tenants/${tenantId}/keys/${id}`);
    const tenant = await admin.models.tenants.findById(tenantId).lean();
    const flag = admin.keyspace.shard(tenant?.shard ?? -1).blocked(id);
    expect(response.body).toEqual({ id, object: 'api_key', deleted: true });
    expect(await admin.redis.exists(flag)).toBe(1);
    const one = await admin.call('get', `/admin/v1/tenants/${tenantId}/keys/${id}`);
    expect(one.body).toMatchObject({ status: 'revoked' });
  });
});

describe('a change of a key', () => {
  const change = (tenantId: string, id: string, body: object) =>
    admin.call('patch', `/admin/v1/tenants/${tenantId}/keys/${id}`, body);

  it('may widen it beyond its tenant, narrow it and give back what it had', async () => {
    const tenantId = await createTenant({ rpm: 10 });
    const { id } = await createKey(tenantId, { scopes: ['chat'] });

    const widened = await change(tenantId, id, { name: 'CI', scopes: ['*'], rpm: 5_000, daily_requests: 7 });
    expect(widened.body).toMatchObject({ name: 'CI', scopes: ['*'], limits: { rpm: 5_000, daily_requests: 7 } });
    const narrowed = await change(tenantId, id, { rpm: null, scopes: ['usage'] });
    expect(narrowed.body).toMatchObject({ name: 'CI', scopes: ['usage'], limits: { rpm: 10, daily_requests: 7 } });
  });

  it('is refused with the field named, of a revoked key, and of another tenant', async () => {
    const tenantId = await createTenant();
    const { id } = await createKey(tenantId);
    expect(errorOf(await change(tenantId, id, { mode: 'test' }))).toMatchObject({ param: 'mode' });
    expect(errorOf(await change(tenantId, id, { rpm: 0 }))).toMatchObject({ code: 'invalid_request', param: 'rpm' });
    expect((await change(await createTenant(), id, { rpm: 1 })).status).toBe(404);
    await admin.call('delete', `/admin/v1/tenants/${tenantId}/keys/${id}`);
    expect((await change(tenantId, id, { rpm: 1 })).status).toBe(409);
  });
});

describe('404', () => {
  it('answers for the key of another tenant, which stays active', async () => {
    const [owner, other] = [await createTenant(), await createTenant()];
    const { id } = await createKey(owner);
    for (const method of ['get', 'delete'] as const) {
      const response = await admin.call(method, `/admin/v1/tenants/${other}/keys/${id}`);
      expect(response.status).toBe(404);
    }
    expect(await admin.models.keys.findById(id).lean()).toMatchObject({ status: 'active' });
  });

  it.each(['key_000000000000000000000000', 'key_1', '%00', 'ten_000000000000000000000000'])(
    'answers for a key that does not exist: %s',
    async (id) => {
      const response = await admin.call('get', `/admin/v1/tenants/${await createTenant()}/keys/${id}`);
      expect(errorOf(response)['code']).toBe('not_found');
    },
  );

  it('answers for a tenant that does not exist', async () => {
    const path = '/admin/v1/tenants/ten_000000000000000000000000/keys';
    expect((await admin.call('get', path)).status).toBe(404);
    expect((await admin.call('post', path, {})).status).toBe(404);
  });
});

it("the list holds the tenant's own keys, newest first, in pages", async () => {
  const [tenantId, other] = [await createTenant(), await createTenant()];
  const ids: string[] = [];
  for (let index = 0; index < 3; index += 1) {
    admin.clock.advance(1);
    ids.unshift((await createKey(tenantId)).id);
  }
  const foreign = await createKey(other);
  const path = `/admin/v1/tenants/${tenantId}/keys?limit=2`;
  const first = await admin.call('get', path);
  const second = await admin.call('get', `${path}&after=${String(first.body.last_id)}`);
  expect([...first.body.data, ...second.body.data].map((key: Key) => key.id)).toEqual(ids);
  expect([first.body.has_more, second.body.has_more]).toEqual([true, false]);
  expect((await admin.call('get', `${path}&after=${foreign.id}`)).status).toBe(400);
});
