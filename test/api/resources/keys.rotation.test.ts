import { beforeAll, describe, expect, it } from '@jest/globals';

import { hashApiKey } from '../../../shared/domain/api-key.ts';
import { createPrincipalRepository } from '../../../shared/mongo/tenants/principal-repository.ts';
import { createAdmissionStore } from '../../../shared/requests/admission-store.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { waitFor } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import type { CallApi } from '../../support/tenant-api.ts';
import { makeKey, tryKey } from '../../support/tenant-keys.ts';
import type { KeyBody } from '../../support/tenant-keys.ts';
import { useService } from '../../support/use-service.ts';
let api: CallApi;
const service = useService({ workers: 0 });
beforeAll(async () => {
  api = apiOf(service, (await service.startTenant()).key);
});

async function rotate(id: string, body?: object, by = api): Promise<KeyBody> {
  const response = await by('post', `/keys/${id}/rotate`, body);
  if (response.status !== 200) throw new Error(`The rotation was refused: ${response.text}`);
  return response.body as KeyBody;
}

async function until(value: string, status: number) {
  const ask = async () => [await tryKey(service, value)].find((response) => response.status === status);
  return waitFor(ask, `${status} for the key`, 3_000);
}

describe('rotating a key', () => {
  it('gives it another value and leaves its id and settings', async () => {
    const key = await makeKey(api, { name: 'CI', scopes: ['chat'], rpm: 5 });

    const rotated = await rotate(key.id, { grace_seconds: 60 });

    const { value, redacted_value, previous_value_expires_at, ...rest } = rotated;
    expect({ ...key, ...rest, value: key.value }).toEqual(key);
    expect(value).toMatch(/^svc_sk_live_[0-9A-Za-z]{32}$/);
    expect(value).not.toBe(key.value);
    expect(redacted_value.slice(-4)).toBe(value.slice(-4));
    expect(Math.abs((previous_value_expires_at ?? 0) - Date.now() / 1000 - 60)).toBeLessThan(30);
  });

  it('has both values work within the grace, and counts them as one key', async () => {
    const key = await makeKey(api, { rpm: 2 });
    expect((await tryKey(service, key.value)).status).toBe(200);

    const { value } = await rotate(key.id, { grace_seconds: 604_800 });

    expect((await tryKey(service, key.value)).status).toBe(200);
    expect(refusalOf(await tryKey(service, value))).toMatchObject({ status: 429, limit: 2 });
  });

  it('rotating a key ends the old value with the grace', async () => {
    const key = await makeKey(api);
    const { value } = await rotate(key.id, { grace_seconds: 1 });

    const refused = await until(key.value, 401);

    expect(refusalOf(refused).code).toBe('expired_api_key');
    expect((await tryKey(service, value)).status).toBe(200);
    const { body } = await api('get', `/keys/${key.id}`);
    expect(body).toMatchObject({ status: 'active', previous_value_expires_at: null });
  });

  it.each([[undefined], [{}], [{ grace_seconds: 0 }]])(
    'ends the old value at once without a grace: %j',
    async (body) => {
      const key = await makeKey(api);
      expect((await tryKey(service, key.value)).status).toBe(200);

      const { value } = await rotate(key.id, body);

      expect((await tryKey(service, value)).status).toBe(200);
      expect(refusalOf(await until(key.value, 401)).code).toBe('invalid_api_key');
    },
  );

  it('keeps several values in their grace; a rotation without one ends them all', async () => {
    const first = await makeKey(api);
    const second = await rotate(first.id, { grace_seconds: 600 });
    const third = await rotate(first.id, { grace_seconds: 600 });
    for (const { value } of [first, second, third]) expect((await tryKey(service, value)).status).toBe(200);

    const last = await rotate(first.id, { grace_seconds: 0 });

    for (const { value } of [first, second, third]) await until(value, 401);
    expect((await tryKey(service, last.value)).status).toBe(200);
  });

  it('is 409 when ten earlier values still work, until they are given up', async () => {
    const { id } = await makeKey(api);
    for (let count = 0; count < 10; count += 1) await rotate(id, { grace_seconds: 600 });

    expect(refusalOf(await api('post', `/keys/${id}/rotate`, { grace_seconds: 600 }))).toMatchObject({ status: 409 });
    await rotate(id, { grace_seconds: 0 });
  });

  it('rotating a key ends every value with the revocation', async () => {
    const key = await makeKey(api);
    const { value } = await rotate(key.id, { grace_seconds: 600 });

    await api('delete', `/keys/${key.id}`);

    for (const each of [key.value, value]) expect(refusalOf(await tryKey(service, each)).code).toBe('invalid_api_key');
  });

  it('leaves one value when two rotations come at once', async () => {
    const { id } = await makeKey(api);

    const rotations = await Promise.all([rotate(id, { grace_seconds: 0 }), rotate(id, { grace_seconds: 0 })]);

    const answers = await Promise.all(rotations.map(({ value }) => tryKey(service, value)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401]);
  });

  it.each([-1, 604_801, 1.5, '60', null])('rotating a key is 400 for a grace of %j', async (grace) => {
    const { id } = await makeKey(api);
    const refused = refusalOf(await api('post', `/keys/${id}/rotate`, { grace_seconds: grace }));
    expect(refused).toMatchObject({ status: 400, param: 'grace_seconds' });
  });

  it('rotating a key is 409 for a key that has expired', async () => {
    const { id } = await makeKey(api);
    await service.models.keys.updateOne({ _id: id }, { expiresAt: Date.now() - 1 });

    expect(refusalOf(await api('post', `/keys/${id}/rotate`, {}))).toMatchObject({ status: 409, code: 'conflict' });
  });
});

describe('an ingress that has missed the message of a change', () => {
  /** As such an ingress has it, and what admission says to that, and to what is in MongoDB. */
  async function rememberKey({ value }: KeyBody) {
    const principals = createPrincipalRepository(service.mongo);
    const settings = { queueLimit: 100, requestTimeoutMs: 60_000, retentionMs: 60_000 };
    const store = createAdmissionStore(service.redis, service.keyspace, settings);
    const remembered = await principals.findByHash(hashApiKey(value));
    if (remembered === undefined) throw new Error('There is no such key');
    return async () => {
      const present = await principals.findByKey(remembered.tenantId, remembered.keyId);
      const both = [remembered, present ?? remembered].map((who) => store.count(newId('req'), who, 'of tenant'));
      return (await Promise.all(both)).map(({ verdict }) => verdict);
    };
  }

  it.each<[string, object, string[]]>([
    ['narrows its scopes', { scopes: ['usage'] }, ['changed', 'admitted']],
    ['lowers a limit', { rpm: 5 }, ['changed', 'admitted']],
    ['ends it sooner', { expires_at: 4_000_000_000 }, ['changed', 'admitted']],
    ['takes nothing back', { name: 'Another', scopes: ['*'] }, ['admitted', 'admitted']],
  ])('looks the key up again where the change %s', async (_what, body, verdicts) => {
    const key = await makeKey(api);
    const verdictsOf = await rememberKey(key);

    expect((await api('patch', `/keys/${key.id}`, body)).status).toBe(200);

    expect(await verdictsOf()).toEqual(verdicts);
  });

  it('looks the key up again after the repeat of a change whose flag was not set', async () => {
    const key = await makeKey(api);
    const verdictsOf = await rememberKey(key);
    await api('patch', `/keys/${key.id}`, { rpm: 5 });
    expect(await service.redis.del(service.keyspace.shard(0).blocked(`${key.id}:0`))).toBe(1);
    await api('patch', `/keys/${key.id}`, { rpm: 5 });

    expect(await verdictsOf()).toEqual(['changed', 'admitted']);
  });

  it('takes the old value no more after a rotation without a grace, and within one it does', async () => {
    const [ended, graced] = [await makeKey(api), await makeKey(api)];
    const [verdictsOfEnded, verdictsOfGraced] = [await rememberKey(ended), await rememberKey(graced)];

    await rotate(ended.id);
    await rotate(graced.id, { grace_seconds: 60 });

    expect(await verdictsOfEnded()).toEqual(['changed', 'admitted']);
    expect(await verdictsOfGraced()).toEqual(['admitted', 'admitted']);
  });

  it('takes no value of a key that was revoked after such a change', async () => {
    const key = await makeKey(api);
    const [verdictsOf, { value }] = [await rememberKey(key), await rotate(key.id)];
    const verdictsOfLast = await rememberKey({ ...key, value });

    await api('delete', `/keys/${key.id}`);

    expect(await verdictsOf()).toEqual(['changed', 'revoked']);
    expect(await verdictsOfLast()).toEqual(['revoked', 'revoked']);
    expect((await tryKey(service, value)).status).toBe(401);
  });
});
