import { beforeEach, describe, expect, it } from '@jest/globals';

import { createCredentialCipher } from '../../../shared/mongo/credentials.ts';
import { createRoutingRepository } from '../../../shared/mongo/routing/routing-repository.ts';
import { CREDENTIALS_KEY, errorOf } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';

const admin = useAdmin();
const SECRET = 'sk-for-the-first-server-only';
const PROVIDER = { kind: 'openai', base_url: 'https://api.openai.com/v1' };

let name: string;
let providers = 0;
const put = (settings: object) => admin.call('put', `/admin/v1/providers/${name}`, settings);

/** What a worker would send, and where. */
async function stored() {
  const routing = createRoutingRepository(admin.mongo, createCredentialCipher(CREDENTIALS_KEY));
  const { baseUrl, apiKey } = (await routing.load()).providers.get(name) ?? {};
  return { baseUrl, apiKey };
}

beforeEach(async () => {
  providers += 1;
  name = `provider-${providers}`;
  await put({ ...PROVIDER, api_key: SECRET });
});

describe('the key of a provider whose server changes', () => {
  it.each([
    ['another host', { base_url: 'https://attacker.example/v1' }],
    ['another port', { base_url: 'https://api.openai.com:8443/v1' }],
    ['plain http', { base_url: 'http://127.0.0.1:8090/v1' }],
    ['another kind', { kind: 'simulated' }],
  ])('is asked for again with %s, and nothing is changed without it', async (_what, change) => {
    const refused = await put({ ...PROVIDER, ...change });

    expect(refused.status).toBe(400);
    expect(errorOf(refused)).toMatchObject({ code: 'invalid_request', param: 'api_key' });
    expect(await stored()).toEqual({ baseUrl: PROVIDER.base_url, apiKey: SECRET });
  });

  it('is replaced by the one that is given, or taken away', async () => {
    const moved = { ...PROVIDER, base_url: 'https://other.example/v1' };

    expect((await put({ ...moved, api_key: 'sk-for-the-other' })).status).toBe(200);
    expect(await stored()).toEqual({ baseUrl: moved.base_url, apiKey: 'sk-for-the-other' });
    expect((await put({ ...PROVIDER, api_key: null })).status).toBe(200);
    expect(await stored()).toEqual({ baseUrl: PROVIDER.base_url, apiKey: undefined });
  });

  it('stays where only the path or other settings change', async () => {
    expect((await put({ ...PROVIDER, base_url: 'https://api.openai.com/v2', max_retries: 0 })).status).toBe(200);
    expect(await stored()).toEqual({ baseUrl: 'https://api.openai.com/v2', apiKey: SECRET });
  });

  it('never meets the address of another call at the same time', async () => {
    const away = { kind: 'openai', base_url: 'https://other.example/v1', api_key: 'sk-for-the-other' };
    await Promise.all(Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? put(away) : put(PROVIDER))));

    const { baseUrl, apiKey } = await stored();
    expect([`${PROVIDER.base_url} ${SECRET}`, `${away.base_url} ${away.api_key}`]).toContain(`${baseUrl} ${apiKey}`);
  });
});

describe('a change of single fields', () => {
  const patch = (body: object, of = name) => admin.call('patch', `/admin/v1/providers/${of}`, body);

  it('leaves the others and the key as they are, within the breaker too', async () => {
    await put({ ...PROVIDER, timeout_ms: 5_000, breaker: { open_ms: 20_000, max_open_ms: 40_000 } });

    const { status, body } = await patch({ max_in_flight: 8, breaker: { min_attempts: 3 } });

    const breaker = { window_ms: 30_000, min_attempts: 3, failure_ratio: 0.5, open_ms: 20_000, max_open_ms: 40_000 };
    expect(status).toBe(200);
    expect(body).toMatchObject({ ...PROVIDER, timeout_ms: 5_000, max_in_flight: 8, breaker, has_api_key: true });
    expect(await stored()).toEqual({ baseUrl: PROVIDER.base_url, apiKey: SECRET });
    expect((await patch({ max_in_flight: null, api_key: null })).body).toMatchObject({
      ...{ max_in_flight: null, timeout_ms: 5_000, has_api_key: false },
    });
  });

  it('does not take back another one at the same time', async () => {
    await Promise.all([
      patch({ timeout_ms: 7_000 }),
      patch({ max_retries: 0 }),
      patch({ first_token_timeout_ms: 9_000 }),
    ]);

    expect((await admin.call('get', `/admin/v1/providers/${name}`)).body).toMatchObject({
      ...{ timeout_ms: 7_000, max_retries: 0, first_token_timeout_ms: 9_000 },
    });
  });

  it.each([
    ['api_key', { base_url: 'https://attacker.example/v1' }],
    ['api_key', { kind: 'simulated' }],
    ['base_url', { base_url: 'http://93.184.215.14/v1', api_key: null }],
    ['base_url', { base_url: null }],
    ['breaker.max_open_ms', { breaker: { open_ms: 60_000 } }],
    ['max_retries', { max_retries: 11 }],
    ['name', { name: 'other' }],
  ])('is refused as a whole, with the field named: %s', async (param, change) => {
    const refused = await patch({ timeout_ms: 7_000, ...change });

    expect(refused.status).toBe(400);
    expect(errorOf(refused)).toMatchObject({ code: 'invalid_request', param });
    expect((await admin.call('get', `/admin/v1/providers/${name}`)).body).toMatchObject({ timeout_ms: 600_000 });
  });

  it('makes no provider', async () => {
    expect((await patch({ timeout_ms: 1 }, 'nobody')).status).toBe(404);
  });
});

describe('plain http', () => {
  it.each([
    'http://api.openai.com/v1',
    'http://93.184.215.14/v1',
    'http://0x5db8d70e/v1',
    'http://[2606:2800:21f::1]/v1',
    // Addresses of the Internet, written as IPv6 has them.
    'http://[::ffff:93.184.215.14]/v1',
    'http://[64:ff9b::93.184.215.14]/v1',
    'http://[2002:5db8:d70e::1]/v1',
  ])('is refused on the Internet: %s', async (url) => {
    const refused = await put({ ...PROVIDER, base_url: url, api_key: null });

    expect(refused.status).toBe(400);
    expect(errorOf(refused)).toMatchObject({ param: 'base_url', message: expect.stringContaining('https') });
  });

  it.each([
    'http://provider:8090/v1',
    'http://10.1.2.3/v1',
    'http://[fd00::1]/v1',
    'http://[::ffff:10.1.2.3]/v1',
    'http://llm.internal/v1',
  ])('is taken on a private network: %s', async (url) => {
    expect((await put({ ...PROVIDER, base_url: url, api_key: null })).status).toBe(200);
  });

  describe('with PROVIDER_ALLOW_HTTP', () => {
    const lax = useAdmin({ providerRules: { allowHttp: true } });

    it('is taken on a public host', async () => {
      const response = await lax.call('put', '/admin/v1/providers/far', {
        ...PROVIDER,
        base_url: 'http://a.example/v1',
      });
      expect(response.status).toBe(201);
    });
  });
});

describe('the address of a provider', () => {
  it.each([
    ['https://a.example/v1/chat/completions', 'https://a.example/v1'],
    ['https://a.example/v1/Chat/Completions/', 'https://a.example/v1'],
    ['https://a.example/v1/chat/completions/chat/completions', 'https://a.example/v1'],
    ['https://a.example/v1/completions', 'https://a.example/v1'],
    ['https://a.example/v1/embeddings', 'https://a.example/v1'],
    ['https://a.example/v1/responses', 'https://a.example/v1'],
    ['https://a.example/v1/v1', 'https://a.example/v1'],
    ['https://a.example/v1/v1/messages', 'https://a.example/v1'],
    ['https://api.anthropic.com/v1/messages', 'https://api.anthropic.com/v1'],
    ['https://api.anthropic.com', 'https://api.anthropic.com/v1'],
    ['https://api.openai.com/', 'https://api.openai.com/v1'],
    [
      'https://n.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21',
      'https://n.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21',
    ],
  ])('is told the address before the path of a call, or the one version of it: %s', async (pasted, right) => {
    const kind = pasted.includes('anthropic') ? 'anthropic' : 'openai';

    const response = await put({ kind, base_url: pasted, api_key: null });

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param: 'base_url' });
    expect(String(errorOf(response)['message'])).toContain(`use ${right} `);
    expect((await put({ kind, base_url: right, api_key: null })).status).toBeLessThan(300);
  });

  it('is no kind of Anthropic’s at OpenAI’s address', async () => {
    const response = await put({ kind: 'anthropic', base_url: 'https://api.openai.com/v1' });

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ param: 'kind' });
    expect(String(errorOf(response)['message'])).toContain('must be openai');
  });

  it('may be Anthropic’s own imitation of OpenAI’s protocol', async () => {
    const moved = { kind: 'openai', base_url: 'https://api.anthropic.com/v1', api_key: null };
    expect((await put(moved)).status).toBe(200);
  });
});
