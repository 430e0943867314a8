import { describe, expect, it } from '@jest/globals';

import type { AdminApi } from '../../../../scripts/harness/admin-api.ts';
import { demoProviders, ensureRoutes } from '../../../../scripts/start/demo-routes.ts';
import type { ServedModel } from '../../../../scripts/start/model-server.ts';
import { readSettings } from '../../../../scripts/start/settings.ts';
import type { StartState } from '../../../../scripts/start/state.ts';

const URL_OF_SERVER = 'http://127.0.0.1:11434/v1';
const served = (model: string): ServedModel => ({ url: URL_OF_SERVER, key: undefined, model, contextWindow: 4_096 });

const providersWith = (env: Record<string, string>, model?: ServedModel) =>
  demoProviders(readSettings(env, []), model).map(({ name, body }) => [name, body.kind, body.base_url]);

describe('the demo tiers go', () => {
  it('to Anthropic by its own protocol where its key is set', () => {
    expect(providersWith({ ANTHROPIC_API_KEY: 'k' })).toEqual([
      ['anthropic', 'anthropic', 'https://api.anthropic.com/v1'],
    ]);
  });

  it('the demo tiers go to OpenAI first where both keys are set', () => {
    expect(providersWith({ ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' }).map(([name]) => name)).toEqual([
      'openai',
      'anthropic',
    ]);
  });

  it('the demo tiers go to the simulated provider where none is', () => {
    expect(providersWith({})).toEqual([['simulated', 'simulated', 'http://127.0.0.1:8090/v1']]);
  });

  it('to the server of PROVIDER_URL by the protocol of OpenAI', () => {
    expect(providersWith({ PROVIDER_URL: URL_OF_SERVER }, served('qwen3'))).toEqual([
      ['own-server', 'openai', URL_OF_SERVER],
    ]);
  });
});

/** The administration as `npm start` finds it, with what it was told. */
function openAdmin(): { admin: AdminApi; rows: Map<string, Record<string, unknown>> } {
  const rows = new Map<string, Record<string, unknown>>();
  let changes = 0;
  const send: AdminApi['send'] = (_method, path, body) => {
    changes += 1;
    const row = { ...(body as object), updated_at: changes, version: changes };
    rows.set(path, row);
    return Promise.resolve(row);
  };
  return { admin: { find: (path) => Promise.resolve(rows.get(path)), send }, rows };
}

const MOBIUS = '/admin/v1/tiers/mobius';
const emptyState = (): StartState => ({
  adminToken: '',
  credentialsKey: '',
  redisPassword: '',
  providers: {},
  tiers: {},
});

describe('a later npm start', () => {
  const start = (admin: AdminApi, state: StartState, env: Record<string, string>, model?: ServedModel) =>
    ensureRoutes(admin, demoProviders(readSettings(env, []), model), state, () => undefined);

  it('sends both tiers to the model that PROVIDER_URL and PROVIDER_MODEL name then, and back without them', async () => {
    const { admin, rows } = openAdmin();
    const state = emptyState();
    const env = { PROVIDER_URL: URL_OF_SERVER };
    await start(admin, state, {});

    await start(admin, state, env, served('qwen3'));
    await start(admin, state, env, served('gemma3'));
    const target = { provider: 'own-server', model: 'gemma3', context_window: 4_096 };
    for (const tier of ['mobius', 'oloid'])
      expect(rows.get(`/admin/v1/tiers/${tier}`)).toMatchObject({ targets: [target] });
    await start(admin, state, {});

    expect(rows.get(MOBIUS)).toMatchObject({ targets: [{ provider: 'simulated' }] });
  });

  it('leaves the routes that an administrator has set', async () => {
    const { admin, rows } = openAdmin();
    const state = emptyState();
    await start(admin, state, {});
    await admin.send('PUT', MOBIUS, { targets: [] });

    await start(admin, state, { PROVIDER_URL: URL_OF_SERVER }, served('qwen3'));

    expect(rows.get(MOBIUS)).toMatchObject({ targets: [] });
  });

  it('ends in the words of the administration where the only provider is refused', async () => {
    const admin: AdminApi = { find: () => Promise.resolve(undefined), send: () => Promise.reject(new Error('No.')) };

    await expect(start(admin, emptyState(), {})).rejects.toThrow('The provider simulated could not be set: No.');
  });
});
