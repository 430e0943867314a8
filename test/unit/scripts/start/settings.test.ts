import { expect, it } from '@jest/globals';

import { readSettings } from '../../../../scripts/start/settings.ts';

it.each(['PORT', 'ADMIN_PORT'])('npm start refuses a %s that it would not know, in a sentence', (setting) => {
  expect(() => readSettings({ [setting]: '0' }, [])).toThrow(
    `${setting} must be a port, 1 to 65535: npm start has to know where the service is reached.`,
  );
});

it('npm start takes 0 for the port of workers, which is off then', () => {
  expect(readSettings({ WORKER_PORT: '0' }, []).workerPorts).toEqual([0]);
});

it.each(['OPENAI_API_KEY', 'ANTHROPIC_API_KEY'])("refuses one of Parley's own keys as %s", (setting) => {
  for (const mode of ['live', 'test'])
    expect(() => readSettings({ [setting]: `svc_sk_${mode}_x` }, [])).toThrow(
      `${setting} holds one of Parley's own keys, not the provider's; unset it, or set the provider's key.`,
    );
  expect(() => readSettings({ [setting]: 'own_sk_test_x', KEY_PREFIX: 'own' }, [])).toThrow(setting);
});

it("takes a provider's key", () => {
  expect(readSettings({ OPENAI_API_KEY: 'sk-proj-x' }, []).openaiKey).toBe('sk-proj-x');
});
