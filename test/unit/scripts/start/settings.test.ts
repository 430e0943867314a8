import { describe, expect, it } from '@jest/globals';

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
  expect(readSettings({ OPENAI_API_KEY: 'sk-proj-x' }, []).answers).toMatchObject({ openaiKey: 'sk-proj-x' });
});

describe('the demo is answered', () => {
  const answersOf = (env: Record<string, string>, args: string[] = []) => readSettings(env, args).answers;
  const PROVIDER_URL = 'http://127.0.0.1:11434/v1/';

  it('by the simulated provider unless something else is named', () => {
    expect(answersOf({})).toEqual({ from: 'simulated', port: 8090 });
  });

  it('by the server of PROVIDER_URL, also where a provider has a key in the shell', () => {
    expect(answersOf({ PROVIDER_URL, PROVIDER_MODEL: 'qwen3', OPENAI_API_KEY: 'sk-x' })).toEqual({
      from: 'server',
      server: { url: 'http://127.0.0.1:11434/v1', model: 'qwen3', key: undefined },
    });
  });

  it("by a model of this machine with --local, where a client's variables are in the shell, too", () => {
    expect(answersOf({ OPENAI_API_KEY: 'svc_sk_live_x' }, ['--local'])).toEqual({ from: 'local', port: 8090 });
  });

  it('by the simulated provider with --demo, whose traffic would be paid for otherwise', () => {
    expect(answersOf({ OPENAI_API_KEY: 'sk-x' }, ['--demo'])).toEqual({ from: 'simulated', port: 8090 });
  });

  it.each<[Record<string, string>, string[], string]>([
    [{}, ['--local', '--demo'], '--demo plays its traffic with simulated answers'],
    [{ PROVIDER_URL }, ['--local'], '--local and PROVIDER_URL name two models to answer'],
    [{ PROVIDER_MODEL: 'qwen3' }, [], 'PROVIDER_MODEL and PROVIDER_KEY need PROVIDER_URL'],
    [{ PROVIDER_URL: '127.0.0.1:11434' }, [], 'PROVIDER_URL must be an http or https URL'],
    [{ PROVIDER_URL: 'http://me:secret@models/v1' }, [], 'PROVIDER_URL must be an http or https URL'],
  ])('by nobody where %j and %j do not say by whom', (env, args, sentence) => {
    expect(() => answersOf(env, args)).toThrow(sentence);
  });
});
