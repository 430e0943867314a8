import { describe, expect, it } from '@jest/globals';

import { chatOf, postChat, waitFor, waitUntil } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey, tryKey } from '../../support/tenant-keys.ts';
import { useApi, useService, useTenant } from '../../support/use-service.ts';
const service = useService();
const tenant = useTenant(service);
const api = useApi(service, tenant);

const seconds = () => Math.floor(Date.now() / 1000);

describe('POST /keys', () => {
  it('makes a live key with every scope and the limits of the tenant by default', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 10, tpm: 20, daily_requests: 30 } });

    const response = await apiOf(service, key)('post', '/keys', {});

    expect(response.status).toBe(201);
    expect(response.body).toEqual({
      id: expect.stringMatching(/^key_[0-9A-Za-z]{24}$/),
      object: 'api_key',
      created_at: expect.any(Number),
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

  it('keeps every setting, and the key works with them', async () => {
    const settings = { name: 'CI', mode: 'test', scopes: ['chat'], expires_at: seconds() + 3_600 };

    const made = await makeKey(api, { ...settings, rpm: 5, tpm: 1_000, daily_requests: 7 });

    expect(made).toMatchObject({ ...settings, limits: { rpm: 5, tpm: 1_000, daily_requests: 7 } });
    const chat = await postChat(service.app, made.value, chatOf('Hi'));
    expect(chat.status).toBe(200);
    expect(chat.headers['x-ratelimit-limit-requests']).toBe('5');
    expect(refusalOf(await apiOf(service, made.value)('get', '/keys')).code).toBe('endpoint_not_allowed');
  });

  it('shows the value once and stores it nowhere', async () => {
    const { id, value } = await makeKey(api);

    const one = await api('get', `/keys/${id}`);
    const list = await api('get', '/keys?limit=100');
    const row = await service.models.keys.findById(id).lean();
    const audit = await service.models.audit.find({ tenantId: tenant.tenantId }).lean();
    expect(one.body).not.toHaveProperty('value');
    expect(JSON.stringify([one.body, list.body, row, audit, service.log.lines])).not.toContain(value.slice(12));
  });

  it.each([
    ['name', { name: 5 }],
    ['name', { name: '😀'.repeat(257) }],
    ['name', { name: 'half \ud800' }],
    ['mode', { mode: 'demo' }],
    ['scopes', { scopes: [] }],
    ['scopes[0]', { scopes: ['admin'] }],
    ['scopes[1]', { scopes: ['chat', 'chat'] }],
    ['expires_at', { expires_at: 1 }],
    ['expires_in_seconds', { expires_in_seconds: 60, expires_at: 99_999_999_999 }],
    ['rpm', { rpm: 0 }],
    ['tpm', { tpm: '5' }],
    ['daily_requests', { daily_requests: -1 }],
    ['status', { status: 'active' }],
  ])('POST /keys names the field that is wrong: %s %j', async (param, body) => {
    expect(refusalOf(await api('post', '/keys', body))).toMatchObject({ status: 400, code: 'invalid_request', param });
  });

  it('POST /keys is 409 for the 101st active key', async () => {
    const { key, tenantId } = await service.startTenant();
    const row = await service.models.keys.findOne({ tenantId }).lean();
    const rows = Array.from({ length: 199 }, (_, index) => ({
      ...row,
      _id: `key_${tenantId}${index}`,
      hash: `${tenantId}${index}`,
    }));
    await service.models.keys.insertMany(rows, { lean: true });

    const refusal = refusalOf(await apiOf(service, key)('post', '/keys', {}));

    expect(refusal).toMatchObject({ status: 409, code: 'conflict', message: expect.stringContaining('100') });
  });

  it('POST /keys is 429 after 200 calls of a tenant within a minute, for a key that has just been made, too', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 1_000 } });
    const first = apiOf(service, key);
    const made = await makeKey(first);
    const calls = Array.from({ length: 199 }, () => first('post', '/keys', { rpm: 0 }));
    expect(new Set((await Promise.all(calls)).map(({ status }) => status))).toEqual(new Set([400]));

    const refused = await apiOf(service, made.value)('post', '/keys', {});

    // Else each new key would bring a minute's requests of its own, however many were revoked for it.
    expect(refusalOf(refused)).toMatchObject({
      status: 429,
      code: 'rpm_exceeded',
      message: 'The limit of 200 requests per minute and tenant on POST /keys is reached; wait as Retry-After says.',
    });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await apiOf(service, made.value)('get', '/keys')).status).toBe(200);
  });
});

describe('GET /keys', () => {
  it("lists the tenant's own keys in pages, newest first or oldest first", async () => {
    const own = await service.startTenant();
    const list = apiOf(service, own.key);
    const made = [own.keyId, (await makeKey(list)).id, (await makeKey(list)).id];

    const first = await list('get', '/keys?limit=2&order=asc');
    const second = await list('get', `/keys?limit=2&order=asc&after=${String(first.body.last_id)}`);
    const newest = await list('get', '/keys');

    const ids = ({ body }: { body: { data: { id: string }[] } }) => body.data.map(({ id }) => id);
    expect([...ids(first), ...ids(second)]).toEqual(made);
    expect([first.body.has_more, second.body.has_more]).toEqual([true, false]);
    expect(ids(newest)).toEqual(made.toReversed());
  });

  it.each(['limit=0', 'limit=101', 'limit=x', 'order=up', 'after=', 'after=key_1', 'after=%00', 'after=a&after=b'])(
    'GET /keys is 400 for %s',
    async (query) => {
      expect(refusalOf(await api('get', `/keys?${query}`))).toMatchObject({ status: 400, code: 'invalid_request' });
    },
  );

  it("takes no other tenant's key for a cursor", async () => {
    const { keyId } = await service.startTenant();
    expect(refusalOf(await api('get', `/keys?after=${keyId}`))).toMatchObject({ status: 400, param: 'after' });
  });

  it('GET /keys says when a key was last used', async () => {
    const { id, value } = await makeKey(api);
    await tryKey(service, value);

    const used = await waitFor(async () => {
      const { body } = await api('get', `/keys/${id}`);
      return (body as { last_used_at: number | null }).last_used_at;
    }, 'last_used_at');

    expect(Math.abs(used - seconds())).toBeLessThan(60);
  });

  it.each(['key_000000000000000000000000', 'key_1', '%00', '..%2f..', 'ten_000000000000000000000000'])(
    'GET /keys is 404 for an id that is none: %s',
    async (id) => {
      for (const method of ['get', 'delete'] as const) {
        expect(refusalOf(await api(method, `/keys/${id}`))).toMatchObject({ status: 404, code: 'not_found' });
      }
    },
  );
});

describe('PATCH /keys/{id}', () => {
  it('changes what it names and leaves the rest', async () => {
    const { id, value } = await makeKey(api, { name: 'old', rpm: 5, expires_in_seconds: 60 });

    const response = await api('patch', `/keys/${id}`, { name: 'new', scopes: ['chat'], rpm: null, expires_at: null });

    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({ name: 'new', scopes: ['chat'], expires_at: null, limits: { rpm: 100_000 } });
    expect((await api('get', `/keys/${id}`)).body).toEqual(response.body);
    expect(refusalOf(await apiOf(service, value)('get', '/keys')).status).toBe(403);
  });

  it('counts for a key that is in use, at once', async () => {
    const { id, value } = await makeKey(api);
    expect((await apiOf(service, value)('get', '/keys')).status).toBe(200);

    await api('patch', `/keys/${id}`, { scopes: ['chat'] });

    await waitUntil(
      async () => (await apiOf(service, value)('get', '/keys')).status === 403,
      'the narrower scopes',
      1_000,
    );
  });

  it.each([
    ['mode', { mode: 'live' }],
    ['name', { name: null }],
    ['scopes', { scopes: null }],
    ['expires_at', { expires_at: 1 }],
    ['expires_in_seconds', { expires_at: null, expires_in_seconds: 1 }],
    ['rpm', { rpm: 0 }],
    ['value', { value: 'svc_sk_live_mine' }],
  ])('PATCH /keys/{id} names the field that is wrong: %s %j', async (param, body) => {
    const { id } = await makeKey(api);
    expect(refusalOf(await api('patch', `/keys/${id}`, body))).toMatchObject({ status: 400, param });
  });

  it('PATCH /keys/{id} is 409 for a revoked key', async () => {
    const { id } = await makeKey(api);
    await api('delete', `/keys/${id}`);

    expect(refusalOf(await api('patch', `/keys/${id}`, { name: 'again' }))).toMatchObject({
      status: 409,
      code: 'conflict',
    });
    expect(refusalOf(await api('post', `/keys/${id}/rotate`, {}))).toMatchObject({ status: 409, code: 'conflict' });
  });
});

describe('DELETE /keys/{id}', () => {
  it('counts at once, for the chat as for the rest, and may be repeated', async () => {
    const { id, value } = await makeKey(api);
    expect((await postChat(service.app, value, chatOf('Hi'))).status).toBe(200);

    const response = await api('delete', `/keys/${id}`);

    expect(response.status).toBe(200);
    expect(response.body).toEqual({ id, object: 'api_key', deleted: true });
    expect(refusalOf(await postChat(service.app, value, chatOf('Hi')))).toMatchObject({
      status: 401,
      code: 'invalid_api_key',
    });
    expect(refusalOf(await tryKey(service, value))).toMatchObject({ status: 401, code: 'invalid_api_key' });
    expect((await api('get', `/keys/${id}`)).body).toMatchObject({ status: 'revoked' });
    expect((await api('delete', `/keys/${id}`)).status).toBe(200);
  });

  it('DELETE /keys/{id} lets a key revoke itself', async () => {
    const { id, value } = await makeKey(api, { scopes: ['keys'] });

    expect((await apiOf(service, value)('delete', `/keys/${id}`)).status).toBe(200);

    expect(refusalOf(await tryKey(service, value)).status).toBe(401);
  });
});
