import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

import { beforeAll, describe, expect, it } from '@jest/globals';

import { NDJSON, itemOf, openPost } from '../../support/batch-client.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import type { CallApi } from '../../support/tenant-api.ts';
import { makeKey, tryKey } from '../../support/tenant-keys.ts';
import type { KeyBody } from '../../support/tenant-keys.ts';
import { useService } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';
let owner: CallApi;
const service = useService({ workers: 0 });
beforeAll(async () => {
  const tenant = await service.startTenant({ tenant: { rpm: 60_000, tpm: 100_000, daily_requests: 0 } });
  owner = apiOf(service, tenant.key);
});

const seconds = () => Math.floor(Date.now() / 1000);

/** A key that may manage keys, and what it is allowed beside that. */
async function weak(settings: object): Promise<{ key: KeyBody; api: CallApi }> {
  const key = await makeKey(owner, { scopes: ['keys', 'chat'], ...settings });
  return { key, api: apiOf(service, key.value) };
}

/** What each part of a weak key refuses: the settings of the weak key, and a wish beyond them. */
const BEYOND: [string, object, object][] = [
  ['scopes', {}, { scopes: ['keys', 'usage'] }],
  ['scopes', {}, { scopes: ['*'] }],
  ['expires_at', { expires_in_seconds: 3_600 }, { expires_in_seconds: 7_200 }],
  ['rpm', { rpm: 100 }, { rpm: 101 }],
  ['tpm', { tpm: 100 }, { tpm: 101 }],
  ['daily_requests', { daily_requests: 5_000 }, { daily_requests: 5_001 }],
  ['daily_requests', { daily_requests: 5_000 }, { daily_requests: 0 }],
];

describe('a key cannot create', () => {
  it.each<[string, object, object]>([
    ...BEYOND,
    ['mode', { mode: 'test' }, { mode: 'live' }],
    ['mode', { mode: 'test' }, {}],
    ['scopes', {}, { scopes: undefined }],
    ['expires_at', { expires_in_seconds: 3_600 }, {}],
    ['rpm', { rpm: 100 }, {}],
    ['tpm', { tpm: 100 }, {}],
    ['daily_requests', { daily_requests: 5_000 }, {}],
  ])('what goes beyond its own %s: %j wants %j', async (param, own, wanted) => {
    const { api } = await weak(own);

    const response = await api('post', '/keys', { scopes: ['chat'], ...wanted });

    expect(refusalOf(response)).toMatchObject({ status: 403, code: 'endpoint_not_allowed', param });
  });
});

describe('a key cannot change', () => {
  it.each(BEYOND)('a key cannot change itself beyond its own %s: %j wants %j', async (param, own, wanted) => {
    const { key, api } = await weak(own);

    expect(refusalOf(await api('patch', `/keys/${key.id}`, wanted))).toMatchObject({ status: 403, param });

    expect((await owner('get', `/keys/${key.id}`)).body).toMatchObject({
      scopes: key.scopes,
      limits: key.limits,
      expires_at: key.expires_at,
    });
  });

  it.each([
    ['expires_at', { expires_in_seconds: 3_600 }, { expires_at: null }],
    ['rpm', { rpm: 100 }, { rpm: null }],
    ['tpm', { tpm: 100 }, { tpm: null }],
    ['daily_requests', { daily_requests: 5_000 }, { daily_requests: null }],
  ])('a key cannot change itself to the default of %s', async (param, own, wanted) => {
    const { key, api } = await weak(own);
    expect(refusalOf(await api('patch', `/keys/${key.id}`, wanted))).toMatchObject({ status: 403, param });
  });

  it('the life of a stronger key, though within its own', async () => {
    const strong = await makeKey(owner, { expires_in_seconds: 60 });
    const { api } = await weak({});
    expect(refusalOf(await api('patch', `/keys/${strong.id}`, { expires_in_seconds: 120 }))).toMatchObject({
      status: 403,
      param: 'scopes',
    });
  });

  it('a stronger key that has expired back to life', async () => {
    const strong = await makeKey(owner);
    await service.models.keys.updateOne({ _id: strong.id }, { expiresAt: Date.now() - 1 });
    const { api } = await weak({});
    expect(refusalOf(await api('patch', `/keys/${strong.id}`, { expires_in_seconds: 60 })).status).toBe(403);
  });

  it('a live key with a test key, beyond what it is', async () => {
    const live = await makeKey(owner, { scopes: ['chat'], rpm: 10 });
    const { api } = await weak({ mode: 'test' });
    expect(refusalOf(await api('patch', `/keys/${live.id}`, { rpm: 20 }))).toMatchObject({
      status: 403,
      param: 'mode',
    });
  });
});

describe('a key cannot rotate', () => {
  it.each<[string, object, object]>([
    ['scopes', {}, {}],
    ['mode', { mode: 'test' }, { scopes: ['chat'] }],
    ['expires_at', { expires_in_seconds: 3_600 }, { scopes: ['chat'] }],
    ['rpm', { rpm: 100 }, { scopes: ['chat'] }],
    ['daily_requests', { daily_requests: 5_000 }, { scopes: ['chat'] }],
  ])('a key with more %s, whose value it would learn: %j rotates %j', async (param, own, stronger) => {
    const target = await makeKey(owner, stronger);
    const { api } = await weak(own);

    expect(refusalOf(await api('post', `/keys/${target.id}/rotate`, { grace_seconds: 60 }))).toMatchObject({
      status: 403,
      param,
    });

    expect((await tryKey(service, target.value)).status).toBe(200);
  });

  it('itself with an old value that is in its grace: that would outlive the grace', async () => {
    const { key, api } = await weak({});
    await owner('post', `/keys/${key.id}/rotate`, { grace_seconds: 600 });

    expect(refusalOf(await api('post', `/keys/${key.id}/rotate`, {}))).toMatchObject({
      status: 403,
      param: 'expires_at',
    });
    expect(refusalOf(await api('post', '/keys', { scopes: ['chat'] }))).toMatchObject({
      status: 403,
      param: 'expires_at',
    });
  });
});

describe('a key may', () => {
  it('a key may create what is within its own', async () => {
    const expiresAt = seconds() + 3_600;
    const { api } = await weak({ rpm: 1_000, tpm: 100, daily_requests: 5_000, expires_at: expiresAt });

    const made = await makeKey(api, {
      scopes: ['chat'],
      mode: 'test',
      rpm: 1_000,
      tpm: 99,
      daily_requests: 4_999,
      expires_at: expiresAt,
    });

    expect(made).toMatchObject({ mode: 'test', scopes: ['chat'], expires_at: expiresAt });
  });

  it('narrow, rename and revoke a stronger one', async () => {
    const strong = await makeKey(owner);
    const { api } = await weak({});

    expect((await api('patch', `/keys/${strong.id}`, { name: 'known', rpm: 5, expires_in_seconds: 60 })).status).toBe(
      200,
    );
    expect((await api('delete', `/keys/${strong.id}`)).status).toBe(200);
  });

  it('a key may rotate itself and a weaker one', async () => {
    const { key, api } = await weak({ rpm: 1_000, expires_in_seconds: 3_600 });
    const weaker = await makeKey(api, { scopes: ['chat'], rpm: 10, expires_in_seconds: 60 });

    expect((await api('post', `/keys/${weaker.id}/rotate`, {})).status).toBe(200);
    expect((await api('post', `/keys/${key.id}/rotate`, {})).status).toBe(200);
  });
});

describe('a key that is revoked while the body of its call arrives', () => {
  it.each([
    ['/keys', 'application/json', { name: 'mine' }],
    ['/batches', NDJSON, itemOf('line')],
  ])('makes nothing by POST %s', async (path, type, body) => {
    const key = await makeKey(owner, { scopes: ['*'] });
    const call = openPost(service, key.value, type, path);
    const answered = once(call, 'response') as Promise<[IncomingMessage]>;
    call.write(JSON.stringify(body).slice(0, -1));
    const lastUse = async () => (await service.models.keys.findById(key.id).lean())?.lastUsedAt;
    await waitFor(lastUse, 'its head to be read');

    await owner('delete', `/keys/${key.id}`);
    call.end('}');

    const [response] = await answered;
    expect(response.statusCode).toBe(401);
    expect(JSON.parse(await text(response))).toMatchObject({ error: { code: 'invalid_api_key' } });
  });
});
