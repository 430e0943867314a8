import { describe, expect, it } from '@jest/globals';

import { renderBanner } from '../../../../scripts/start/banner.ts';
import { demoProviders } from '../../../../scripts/start/demo-routes.ts';
import type { ServedModel } from '../../../../scripts/start/model-server.ts';
import { readSettings } from '../../../../scripts/start/settings.ts';

const tenant = {
  tenantId: 't',
  liveKey: { id: 'l', value: 'svc_sk_live_l' },
  testKey: { id: 't', value: 'svc_sk_test_t' },
};
const SERVED: ServedModel = { url: 'http://127.0.0.1:8090/v1', key: undefined, model: 'm', contextWindow: 2_048 };

function bannerOf(env: Record<string, string>, args: string[] = [], ollama: string[] = []): string {
  const settings = readSettings(env, args);
  const served = args.includes('--local') || 'PROVIDER_URL' in env ? SERVED : undefined;
  const providers = demoProviders(settings, served);
  return renderBanner({ settings, tenant, adminToken: 'token', providers, ollama });
}

describe('the start-up text', () => {
  it('has what a stock client needs, the models and, before all, the console', () => {
    const text = bannerOf({});

    expect(text).toContain('export OPENAI_BASE_URL=http://127.0.0.1:8080/platform/v1 OPENAI_API_KEY=svc_sk_live_l\n');
    expect(text).toMatch(/Models +mobius, oloid\n/);
    expect(text).toContain('http://127.0.0.1:8080/docs/');
    expect(text.indexOf('http://')).toBe(text.indexOf('http://127.0.0.1:8080/console/'));
  });

  it('says of simulated answers what they are, and how to get real ones', () => {
    const text = bannerOf({});

    expect(text).toMatch(/Answers from +a simulation: no model runs/);
    for (const way of ['npm start -- --local', 'PROVIDER_URL=', 'OPENAI_API_KEY=sk-...']) expect(text).toContain(way);
  });

  it('offers the models of an Ollama that runs here by name', () => {
    expect(bannerOf({}, [], ['qwen3:4b', 'gemma3'])).toContain(
      'PROVIDER_URL=http://127.0.0.1:11434/v1 PROVIDER_MODEL=qwen3:4b npm start   # the Ollama that runs here; it has qwen3:4b, gemma3',
    );
  });

  it('says that requests to a provider with a key are paid', () => {
    expect(bannerOf({ OPENAI_API_KEY: 'sk-x' })).toMatch(
      /openai \(mobius: gpt-4o-mini, oloid: gpt-4o\)\. EACH REQUEST IS PAID THERE/,
    );
  });

  it('names the server, model and context of PROVIDER_URL, and no other way', () => {
    const text = bannerOf({ PROVIDER_URL: SERVED.url });

    expect(text).toContain(`own-server (m) at ${SERVED.url}, context of 2048 tokens`);
    expect(text).not.toContain('--local');
  });

  it('bounds the answers of the small model in every line that it prints', () => {
    const lines = bannerOf({}, ['--local']).split('\n');

    expect(lines.filter((line) => /max_tokens"?: ?200/.test(line))).toHaveLength(3);
  });
});
