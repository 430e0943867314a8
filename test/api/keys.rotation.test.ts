import { beforeAll, describe, expect, it } from '@jest/globals';

import { waitFor } from '../support/chat.ts';
import { refusalOf } from '../support/refusal.ts';
import { apiOf } from '../support/tenant-api.ts';
import type { CallApi } from '../support/tenant-api.ts';
import { makeKey, tryKey } from '../support/tenant-keys.ts';
import type { KeyBody } from '../support/tenant-keys.ts';
import { useService } from '../support/use-service.ts';
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

const until = (value: string, status: number) =>
  waitFor(
    async () => {
      const response = await tryKey(service, value);
      return response.status === status ? response : undefined;
    },
    `${status} for the key`,
    3_000,
  );

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
    expect((await api('get', `/keys/${key.id}`)).body).toMatchObject({
      status: 'active',
      previous_value_expires_at: null,
    });
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
    expect(refusalOf(await api('post', `/keys/${id}/rotate`, { grace_seconds: grace }))).toMatchObject({
      status: 400,
      param: 'grace_seconds',
    });
  });

  it('rotating a key is 409 for a key that has expired', async () => {
    const { id } = await makeKey(api);
    await service.models.keys.updateOne({ _id: id }, { expiresAt: Date.now() - 1 });

    expect(refusalOf(await api('post', `/keys/${id}/rotate`, {}))).toMatchObject({ status: 409, code: 'conflict' });
  });
});
