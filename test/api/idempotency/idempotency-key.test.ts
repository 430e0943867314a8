import { describe, expect, it } from '@jest/globals';

import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey, tryKey } from '../../support/tenant-keys.ts';
import { useApi, useService, useTenant } from '../../support/use-service.ts';
const service = useService({ workers: 0 });
const tenant = useTenant(service);
const api = useApi(service, tenant);

let last = 0;
/** A name that no other test has used. */
function newName(): Record<string, string> {
  last += 1;
  return { 'Idempotency-Key': `name ${last}` };
}

const countKeys = () => service.models.keys.countDocuments({ tenantId: tenant.tenantId });

describe('a POST with an Idempotency-Key', () => {
  it('is answered again with the same resource, without the secret', async () => {
    const name = newName();
    const first = await api('post', '/keys', { name: 'once' }, name);
    const count = await countKeys();

    const second = await api('post', '/keys', { name: 'once' }, name);

    const { value, ...shown } = first.body as { value: string };
    expect(value).toMatch(/^svc_sk_live_/);
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body).toEqual(shown);
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
    expect(await countKeys()).toBe(count);
  });

  it('a POST with an Idempotency-Key keeps no secret in the database', async () => {
    const { body } = await api('post', '/keys', {}, newName());
    const rows = await service.models.idempotency.find({ tenantId: tenant.tenantId }).lean();
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(String(body.value).slice(12));
  });

  it('a POST with an Idempotency-Key rotates once', async () => {
    const { id } = await makeKey(api);
    const name = newName();
    const first = await api('post', `/keys/${id}/rotate`, {}, name);

    const second = await api('post', `/keys/${id}/rotate`, {}, name);

    expect(second.body).not.toHaveProperty('value');
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect((await tryKey(service, String(first.body.value))).status).toBe(200);
  });

  it('is 422 with another body, or for another thing', async () => {
    const [one, two] = [await makeKey(api), await makeKey(api)];
    const name = newName();
    await api('post', `/keys/${one.id}/rotate`, {}, name);

    for (const [path, body] of [
      [`/keys/${one.id}/rotate`, { grace_seconds: 5 }],
      [`/keys/${two.id}/rotate`, {}],
      ['/keys', {}],
    ] as const) {
      expect(refusalOf(await api('post', path, body, name))).toMatchObject({
        status: 422,
        code: 'idempotency_mismatch',
      });
    }
  });

  it('runs once when many come at the same time', async () => {
    const name = newName();
    const count = await countKeys();

    const responses = await Promise.all(Array.from({ length: 5 }, () => api('post', '/keys', {}, name)));

    expect(responses.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
    expect(new Set(responses.map(({ body }) => String(body.id))).size).toBe(1);
    expect(responses.filter(({ body }) => 'value' in body)).toHaveLength(1);
    expect(await countKeys()).toBe(count + 1);
  });

  it('is 409 with Retry-After while the first one runs on', async () => {
    const name = newName();
    await api('post', '/keys', {}, name);
    // As if the first call had not ended yet.
    await service.models.idempotency.updateMany(
      { tenantId: tenant.tenantId },
      { $unset: { status: 1 }, $set: { claimedAt: Date.now() } },
    );

    expect(refusalOf(await api('post', '/keys', {}, name))).toMatchObject({
      status: 409,
      code: 'conflict',
      retryAfter: 1,
    });
  });

  it('runs again when the first one has died with its process', async () => {
    const name = newName();
    const first = await api('post', '/keys', { name: 'died' }, name);
    const count = await countKeys();
    await service.models.idempotency.updateMany(
      { tenantId: tenant.tenantId },
      { $unset: { status: 1 }, $set: { claimedAt: Date.now() - 61_000 } },
    );

    const response = await api('post', '/keys', { name: 'died' }, name);

    // What it has made is there; its value is not known any more.
    expect(response.status).toBe(201);
    expect({ ...response.body, value: String(first.body.value) }).toEqual(first.body);
    expect(response.body).not.toHaveProperty('value');
    expect(await countKeys()).toBe(count);
  });

  it('rotates no second time when the first one has died with its process', async () => {
    const { id } = await makeKey(api);
    const name = newName();
    const first = await api('post', `/keys/${id}/rotate`, {}, name);
    await service.models.idempotency.updateMany(
      { tenantId: tenant.tenantId },
      { $unset: { status: 1 }, $set: { claimedAt: Date.now() - 61_000 } },
    );

    const second = await api('post', `/keys/${id}/rotate`, {}, name);

    expect([second.status, 'value' in second.body]).toEqual([200, false]);
    expect((await tryKey(service, String(first.body.value))).status).toBe(200);
  });

  it('a POST with an Idempotency-Key runs again after 24 hours', async () => {
    const name = newName();
    await api('post', '/keys', {}, name);
    await service.models.idempotency.updateMany(
      { tenantId: tenant.tenantId },
      { $set: { expiresAt: new Date(Date.now() - 1) } },
    );

    expect((await api('post', '/keys', { name: 'next day' }, name)).body).toHaveProperty('value');
  });

  it('a POST with an Idempotency-Key is not remembered when it was refused', async () => {
    const { id } = await makeKey(api);
    await api('delete', `/keys/${id}`);
    const name = newName();
    expect((await api('post', `/keys/${id}/rotate`, {}, name)).status).toBe(409);
    expect((await api('post', '/keys', { mode: 'none' }, name)).status).toBe(400);

    expect((await api('post', '/keys', {}, name)).body).toHaveProperty('value');
  });

  it('a POST with an Idempotency-Key counts for its tenant and mode alone', async () => {
    const name = newName();
    const other = apiOf(service, (await service.startTenant()).key);
    const test = apiOf(service, (await makeKey(api, { mode: 'test', scopes: ['*'] })).value);
    const body = { mode: 'test' };

    const responses = [
      await api('post', '/keys', body, name),
      await other('post', '/keys', body, name),
      await test('post', '/keys', body, name),
    ];

    expect(responses.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(new Set(responses.map((response) => String(response.body.id))).size).toBe(3);
  });

  it.each(['', 'x'.repeat(256)])('a POST with an Idempotency-Key is 400 when it is no such key: %j', async (key) => {
    // Cancelling can be repeated without one, and still takes no other.
    for (const path of ['/keys', `/chat/req_${'x'.repeat(24)}/cancel`]) {
      const refused = refusalOf(await api('post', path, {}, { 'Idempotency-Key': key }));
      expect(refused).toMatchObject({ status: 400, param: 'Idempotency-Key' });
    }
  });

  it('a POST with an Idempotency-Key counts one towards the limit each time', async () => {
    const { key } = await service.startTenant({ key: { rpm: 2 } });
    const name = newName();
    const limited = apiOf(service, key);
    const body = { scopes: ['chat'], rpm: 1 };
    const responses = [await limited('post', '/keys', body, name), await limited('post', '/keys', body, name)];

    expect(responses.map(({ status }) => status)).toEqual([201, 201]);
    expect(refusalOf(await limited('post', '/keys', body, name))).toMatchObject({ status: 429, code: 'rpm_exceeded' });
  });
});
