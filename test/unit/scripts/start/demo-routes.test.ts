import { describe, expect, it } from '@jest/globals';

import { demoProviders } from '../../../../scripts/start/demo-routes.ts';
import { readSettings } from '../../../../scripts/start/settings.ts';

const providersWith = (env: Record<string, string>) =>
  demoProviders(readSettings(env, [])).map(({ name, body }) => [name, body.kind, body.base_url]);

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
});
