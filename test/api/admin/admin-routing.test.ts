import { describe, expect, it } from '@jest/globals';

import { createCredentialCipher } from '../../../shared/mongo/credentials.ts';
import { createRoutingRepository } from '../../../shared/mongo/routing/routing-repository.ts';
import { CREDENTIALS_KEY, errorOf } from '../../support/admin.ts';
import { useRoutingAdmin } from '../../support/use-service.ts';

const admin = useRoutingAdmin();

const PROVIDER = { kind: 'openai', base_url: 'http://127.0.0.1:8090/v1' };
const putProvider = (name: string, body: object = PROVIDER) => admin.call('put', `/admin/v1/providers/${name}`, body);
const putTier = (body: object, tier = 'mobius') => admin.call('put', `/admin/v1/tiers/${tier}`, body);
const routing = () => createRoutingRepository(admin.mongo, createCredentialCipher(CREDENTIALS_KEY)).load();

describe('a provider', () => {
  it('is created with the defaults, then replaced', async () => {
    const created = await putProvider('sim');
    expect(created.status).toBe(201);
    const now = Math.floor(admin.clock.now() / 1000);
    expect(created.body).toEqual({
      id: 'sim',
      object: 'provider',
      created_at: now,
      name: 'sim',
      kind: 'openai',
      base_url: 'http://127.0.0.1:8090/v1',
      has_api_key: false,
      timeout_ms: 600_000,
      first_token_timeout_ms: 15_000,
      max_retries: 2,
      breaker: { window_ms: 30_000, min_attempts: 10, failure_ratio: 0.5, open_ms: 10_000, max_open_ms: 15_000 },
      breaker_state: 'closed',
      max_in_flight: null,
      capacity: [],
      updated_at: now,
    });
    await putProvider('sim', { ...PROVIDER, timeout_ms: 5, max_retries: 0 });
    const replaced = await putProvider('sim', {
      ...PROVIDER,
      kind: 'simulated',
      first_token_timeout_ms: 7,
      max_in_flight: 4,
    });
    expect(replaced.status).toBe(200);
    expect(replaced.body).toMatchObject({
      kind: 'simulated',
      timeout_ms: 600_000,
      first_token_timeout_ms: 7,
      max_retries: 2,
      max_in_flight: 4,
    });
  });

  it('gets its credential to the worker and shows it to nobody', async () => {
    const secret = 'sk-provider-secret-1234567890';
    const put = await putProvider('sim', { ...PROVIDER, api_key: secret });
    const one = await admin.call('get', '/admin/v1/providers/sim');
    const list = await admin.call('get', '/admin/v1/providers');
    const row = await admin.models.providers.findById('sim').lean();
    expect(one.body).toMatchObject({ has_api_key: true });
    expect(JSON.stringify([put.body, one.body, list.body, row])).not.toContain(secret);
    expect((await routing()).providers.get('sim')?.apiKey).toBe(secret);
  });

  it('keeps its credential when it is replaced without one, and loses it with null', async () => {
    await putProvider('sim', { ...PROVIDER, api_key: 'sk-kept' });
    await putProvider('sim', { ...PROVIDER, max_retries: 5 });
    expect((await routing()).providers.get('sim')).toMatchObject({ apiKey: 'sk-kept', maxRetries: 5 });
    const without = await putProvider('sim', { ...PROVIDER, api_key: null });
    expect(without.body).toMatchObject({ has_api_key: false });
  });

  it('may have the query that Azure’s addresses end in', async () => {
    const baseUrl = 'https://name.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21';

    expect((await putProvider('azure', { ...PROVIDER, base_url: baseUrl })).body).toMatchObject({ base_url: baseUrl });
  });

  it.each([
    ['kind', { kind: 'azure' }],
    ['kind', { kind: undefined }],
    ['base_url', { base_url: undefined }],
    ['base_url', { base_url: 'not a url' }],
    ['base_url', { base_url: 'ftp://host/v1' }],
    ['base_url', { base_url: 'http:host' }],
    ['base_url', { base_url: 'http://user:secret@host/v1' }],
    ['base_url', { base_url: 'http://host/v1?key=secret' }],
    ['base_url', { base_url: 'http://host/v1#x' }],
    ['base_url', { base_url: 'http://host/v1?api-version=1&key=secret' }],
    ['base_url', { base_url: 'http://host/v1?key=secret&api-version=1' }],
    ['base_url', { base_url: 5 }],
    ['base_url', { base_url: 'http://host/v1\u200b' }],
    ['api_key', { api_key: 'line\nbreak' }],
    ['api_key', { api_key: 'svc_sk_live_secret' }],
    ['api_key', { api_key: 'svc_sk_test_secret' }],
    ['api_key', { api_key: '' }],
    ['api_key', { api_key: 5 }],
    ['timeout_ms', { timeout_ms: 0 }],
    ['timeout_ms', { timeout_ms: '5' }],
    ['first_token_timeout_ms', { first_token_timeout_ms: 1.5 }],
    ['max_retries', { max_retries: 11 }],
    ['max_retries', { max_retries: -1 }],
    ['max_in_flight', { max_in_flight: 0 }],
    ['encryptedApiKey', { encryptedApiKey: 'x' }],
  ])('a provider is refused with the field named: %s %j', async (param, fields) => {
    const response = await putProvider('sim', { ...PROVIDER, ...fields });
    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
    expect(JSON.stringify(response.body)).not.toMatch(/secret|line/);
  });

  it.each(['Sim', '-sim', 'a'.repeat(64), 'a%20b', 'a%00', '%2E%2E', 'a.b'])(
    'a provider cannot be called %s',
    async (name) => {
      const put = await putProvider(name);
      expect(put.status).toBe(400);
      expect(errorOf(put)).toMatchObject({ code: 'invalid_request', param: 'name' });
      expect((await admin.call('get', `/admin/v1/providers/${name}`)).status).toBe(404);
      expect((await admin.call('delete', `/admin/v1/providers/${name}`)).status).toBe(404);
    },
  );

  it('a provider is deleted, once', async () => {
    await putProvider('sim');
    const response = await admin.call('delete', '/admin/v1/providers/sim');
    expect(response.body).toEqual({ id: 'sim', object: 'provider', deleted: true });
    expect((await admin.call('delete', '/admin/v1/providers/sim')).status).toBe(404);
  });

  it('is not deleted while a tier sends requests to it', async () => {
    await putProvider('sim');
    await putProvider('other');
    const rates = { prompt: 1, completion: 1 };
    await putTier({ rates, targets: [{ provider: 'sim', model: 'm' }] });
    const refused = await admin.call('delete', '/admin/v1/providers/sim');
    expect(refused.status).toBe(409);
    expect(errorOf(refused)['code']).toBe('conflict');
    await putTier({ rates, targets: [{ provider: 'other', model: 'm' }] });
    expect((await admin.call('delete', '/admin/v1/providers/sim')).status).toBe(200);
  });

  it('a provider is listed by name', async () => {
    for (const name of ['b', 'c', 'a']) await putProvider(name);
    const names = async (query: string) =>
      ((await admin.call('get', `/admin/v1/providers?${query}`)).body.data as { id: string }[]).map(({ id }) => id);
    expect(await names('order=asc')).toEqual(['a', 'b', 'c']);
    expect(await names('order=asc&after=a&limit=1')).toEqual(['b']);
    expect(await names('')).toEqual(['c', 'b', 'a']);
  });
});

describe('a tier', () => {
  const TIER = { rates: { prompt: 0.25, completion: 1.000001 }, targets: [{ provider: 'sim', model: 'sim?chunks=4' }] };

  it('that was never set is version 0 at the default rates, without targets', async () => {
    const response = await admin.call('get', '/admin/v1/tiers/oloid');
    expect(response.body).toEqual({
      id: 'oloid',
      object: 'tier',
      version: 0,
      rates: { prompt: 4, completion: 4 },
      targets: [],
      updated_at: null,
    });
  });

  it('reaches the worker with the defaults of its targets filled in', async () => {
    await putProvider('sim');
    const put = await putTier(TIER);
    expect(put.body).toEqual({
      id: 'mobius',
      object: 'tier',
      version: 1,
      rates: TIER.rates,
      targets: [
        {
          ...{ provider: 'sim', model: 'sim?chunks=4', weight: 1, priority: 1, context_window: 128_000 },
          max_in_flight: null,
          cost: null,
          capabilities: null,
          max_output_tokens: null,
        },
      ],
      updated_at: Math.floor(admin.clock.now() / 1000),
    });
    expect((await routing()).tiers.mobius).toMatchObject({
      version: 1,
      rates: { promptMicro: 250_000, completionMicro: 1_000_001 },
      targets: [{ provider: 'sim', contextWindow: 128_000 }],
    });
    expect((await admin.call('get', '/admin/v1/tiers/mobius')).body).toEqual(put.body);
  });

  it.each([
    ['targets[0].capabilities[0]', { targets: [{ provider: 'sim', model: 'm', capabilities: ['sight'] }] }],
    ['targets[0].max_output_tokens', { targets: [{ provider: 'sim', model: 'm', max_output_tokens: 0 }] }],
    ['targets[0].provider', { targets: [{ provider: 'nobody', model: 'm' }] }],
    [
      'targets[1].provider',
      {
        targets: [
          { provider: 'sim', model: 'm' },
          { provider: 'x', model: 'm' },
        ],
      },
    ],
    ['targets', { targets: [] }],
    ['targets', { targets: undefined }],
    ['targets', { targets: {} }],
    ['targets[0]', { targets: [null] }],
    ['targets[0].model', { targets: [{ provider: 'sim' }] }],
    ['targets[0].model', { targets: [{ provider: 'sim', model: 'm\n' }] }],
    ['targets[0].model', { targets: [{ provider: 'sim', model: ' m' }] }],
    ['targets[0].model', { targets: [{ provider: 'sim', model: 'm\u00a0' }] }],
    ['targets[0].model', { targets: [{ provider: 'sim', model: 'm\u200bn' }] }],
    ['targets[0].weight', { targets: [{ provider: 'sim', model: 'm', weight: -1 }] }],
    ['targets[0].priority', { targets: [{ provider: 'sim', model: 'm', priority: 0.5 }] }],
    ['targets[0].context_window', { targets: [{ provider: 'sim', model: 'm', context_window: 0 }] }],
    ['targets[0].colour', { targets: [{ provider: 'sim', model: 'm', colour: 'red' }] }],
    ['rates', { rates: undefined }],
    ['rates.prompt', { rates: { prompt: -1, completion: 1 } }],
    ['rates.prompt', { rates: { prompt: 0.0000001, completion: 1 } }],
    ['rates.completion', { rates: { prompt: 1 } }],
    ['version', { version: 7 }],
  ])('a tier is refused with the field named: %s', async (param, fields) => {
    await putProvider('sim');
    const response = await putTier({ ...TIER, ...fields });
    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
    expect((await admin.call('get', '/admin/v1/tiers/mobius')).body).toMatchObject({ version: 0 });
  });

  it('a tier that does not exist is 404', async () => {
    for (const path of ['gpt', 'gpt/versions', '%00']) {
      expect((await admin.call('get', `/admin/v1/tiers/${path}`)).status).toBe(404);
    }
    expect((await putTier(TIER, 'gpt')).status).toBe(404);
    expect((await admin.call('post', '/admin/v1/tiers/gpt/rollback', { version: 1 })).status).toBe(404);
  });

  it('a tier is in the list with the others', async () => {
    const { body } = await admin.call('get', '/admin/v1/tiers?order=asc');
    expect(body).toMatchObject({ object: 'list', data: [{ id: 'mobius' }, { id: 'oloid' }, { id: 'embedding' }] });
  });

  it('lists its versions newest first, in pages', async () => {
    await putProvider('sim');
    for (let index = 0; index < 3; index += 1) await putTier(TIER);
    await putTier(TIER, 'oloid');
    const path = '/admin/v1/tiers/mobius/versions';
    const first = await admin.call('get', `${path}?limit=2`);
    const second = await admin.call('get', `${path}?limit=2&after=${String(first.body.last_id)}`);
    const versions = [...first.body.data, ...second.body.data] as { id: string; version: number }[];
    expect(versions.map(({ id }) => id)).toEqual(['mobius:3', 'mobius:2', 'mobius:1']);
    expect([first.body.has_more, second.body.has_more]).toEqual([true, false]);
    expect((await admin.call('get', `${path}?after=oloid:1`)).status).toBe(400);
  });
});

describe('a rollback', () => {
  const tier = (prompt: number, provider = 'sim') => ({
    rates: { prompt, completion: 1 },
    targets: [{ provider, model: 'm', weight: 0, priority: 3, context_window: 4 }],
  });
  const rollback = (body: object) => admin.call('post', '/admin/v1/tiers/mobius/rollback', body);

  it('makes a new version with the old content', async () => {
    await putProvider('sim');
    const first = await putTier(tier(1));
    await putTier({ ...tier(2), rates: { prompt: 2, completion: 1, cached: 0.5, reasoning: 9 } });
    const response = await rollback({ version: 1 });
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ ...first.body, version: 3 });
    // Prices by kind that it does not have are gone, where it is read as well.
    expect((await admin.call('get', '/admin/v1/tiers/mobius')).body).toEqual(response.body);
    expect((await routing()).tiers.mobius?.rates.kinds).toBeUndefined();
  });

  it('a rollback to a version that never was is 404', async () => {
    await putProvider('sim');
    await putTier(tier(1));
    expect((await rollback({ version: 2 })).status).toBe(404);
  });

  it('to a version whose provider was deleted is refused', async () => {
    await putProvider('sim');
    await putProvider('old');
    await putTier(tier(1, 'old'));
    await putTier(tier(1));
    await admin.call('delete', '/admin/v1/providers/old');
    const response = await rollback({ version: 1 });
    expect(response.status).toBe(409);
    expect((await admin.call('get', '/admin/v1/tiers/mobius')).body).toMatchObject({ version: 2 });
  });

  it.each([{}, { version: 0 }, { version: '1' }, { version: 1.5 }, { version: null }])(
    'a rollback to %j is refused',
    async (body) => {
      expect(errorOf(await rollback(body))).toMatchObject({ code: 'invalid_request', param: 'version' });
    },
  );
});
