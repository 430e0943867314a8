import { describe, expect, it } from '@jest/globals';

import { createCredentialCipher } from '../../../../shared/mongo/credentials.ts';
import { loadConfig } from '../../../../shared/config/load-config.ts';
import { credentialsSettings } from '../../../../scripts/start/state.ts';

const keyOf = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const state = { adminToken: '', redisPassword: '', providers: {}, tiers: {}, credentialsKey: keyOf(1) };

function settingsWith(env: Record<string, string>) {
  const others = { REDIS_URL: 'redis://h', MONGODB_URI: 'mongodb://h/parley' };
  return loadConfig({ ...others, ...env, ...credentialsSettings(env, state) }, 'worker');
}

describe('what npm start has encrypted', () => {
  it.each([
    ['none is set', {}],
    ['another one is set afterwards', { CREDENTIALS_KEY: keyOf(2) }],
    ['others can be read as well', { CREDENTIALS_KEY: keyOf(2), CREDENTIALS_KEYS: keyOf(3) }],
  ])('what npm start has encrypted can be read where %s', (_name, env) => {
    const text = createCredentialCipher(Buffer.alloc(32, 1)).encrypt('secret', 'here');
    const { key, otherKeys } = settingsWith(env).credentials;

    expect(createCredentialCipher(key, otherKeys).decrypt(text, 'here')).toBe('secret');
    expect(key.toString('base64')).toBe('CREDENTIALS_KEY' in env ? env.CREDENTIALS_KEY : keyOf(1));
  });
});
