import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { ConfigError, adviceOnNames, loadConfig } from '../../../../shared/config/load-config.ts';
import { adminTokensOf } from '../../../../shared/config/secret-settings.ts';
import { parseRedisUrl } from '../../../../shared/redis/redis-target.ts';

const TOKEN = '0123456789abcdef0123456789abcdef';
const REQUIRED = {
  REDIS_URL: 'redis://127.0.0.1:6379',
  MONGODB_URI: 'mongodb://127.0.0.1:27017/parley',
  ADMIN_TOKEN: TOKEN,
  CREDENTIALS_KEY: Buffer.alloc(32, 1).toString('base64'),
};
const load = (env: Record<string, string | undefined> = {}) => loadConfig({ ...REQUIRED, ...env }, 'api');

/** The faults that are reported for `env`. */
function faultsOf(env: Record<string, string | undefined>, kind: 'api' | 'worker' = 'api'): readonly string[] {
  try {
    loadConfig({ ...REQUIRED, ...env }, kind);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

describe('the settings', () => {
  it('the settings have the documented defaults', () => {
    expect(load()).toMatchObject({
      http: { port: 8080, adminPort: 8081, workerPort: 0, trustProxy: [], requireHttps: false, corsOrigins: [] },
      process: { keyPrefix: 'svc' },
      worker: { concurrency: 512 },
      queue: { shards: 1, maxWaiting: 10_000, completedKept: 200 },
      limits: {
        streamRetentionSeconds: 900,
        disconnectGraceSeconds: 30,
        requestTimeoutSeconds: 600,
        shutdownGraceSeconds: 30,
      },
      payments: { kind: 'none' },
    });
  });

  it('count as absent when they are empty, as in a .env file', () => {
    expect(load({ PORT: '', TRUST_PROXY: '', TLS_CERT_FILE: '' }).http).toEqual(load().http);
  });

  it('refuse a NODE_ENV that is none, with which what production forbids would hold', () => {
    expect(faultsOf({ NODE_ENV: 'prod' })).toEqual(['NODE_ENV must be one of [development, production, test].']);
    for (const known of ['development', 'production', 'test']) expect(faultsOf({ NODE_ENV: known })).toEqual([]);
  });

  it('cannot be changed after the start, nested ones included', () => {
    const config = load({ TRUST_PROXY: 'loopback' });

    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.limits)).toBe(true);
    expect(Object.isFrozen(config.http.trustProxy)).toBe(true);
  });

  it('report every fault together, each by its name', () => {
    const faults = faultsOf({ PORT: '70000', REDIS_URL: 'http://x', QUEUE_SHARDS: '0', MONGODB_URI: undefined });

    expect(faults).toHaveLength(4);
    for (const name of ['PORT', 'REDIS_URL', 'QUEUE_SHARDS', 'MONGODB_URI'])
      expect(faults).toContainEqual(expect.stringContaining(name));
  });

  it('the settings show no secret in a fault', () => {
    const secrets = {
      ADMIN_TOKEN: 'hunter2',
      ADMIN_TOKENS: 'hunter2:hunter2',
      METRICS_TOKEN: 'hunter2',
      CREDENTIALS_KEY: 'c2VjcmV0',
      CREDENTIALS_KEYS: 'c2VjcmV0',
      MONGODB_URI: 'mongo://root:pa55@h',
      STRIPE_SECRET_KEY: 'sk_1',
      MODERATION_API_KEY: 'mod secret',
      MODERATION_BASE_URL: 'https://user:pa55@host/v1',
    };

    expect(faultsOf(secrets).join(' ')).not.toMatch(/hunter2|c2VjcmV0|pa55|sk_1|mod secret/);
  });

  it('the settings ask a worker for no administrator token', () => {
    expect(faultsOf({ ADMIN_TOKEN: undefined }, 'worker')).toEqual([]);
    expect(faultsOf({ ADMIN_TOKEN: undefined }, 'api')).toEqual(['ADMIN_TOKEN or ADMIN_TOKENS is required.']);
  });

  const tokensOf = (env: Record<string, string | undefined>) => adminTokensOf(load(env).admin);

  it('have a write token without a name, and tokens with names and roles', () => {
    const [dana, grafana] = [`${TOKEN}:dana`, `${TOKEN}-grafana`];

    expect(tokensOf({ ADMIN_TOKENS: `dana:write:${dana}, grafana:read:${grafana}` })).toEqual([
      { name: 'admin', role: 'write', token: TOKEN },
      { name: 'dana', role: 'write', token: dana },
      { name: 'grafana', role: 'read', token: grafana },
    ]);
    expect(tokensOf({ ADMIN_TOKEN: undefined, ADMIN_TOKENS: `dana:read:${dana}` })).toHaveLength(1);
  });

  it('let two tokens of one name overlap', () => {
    const tokens = tokensOf({ ADMIN_TOKENS: `dana:write:${TOKEN}1,dana:write:${TOKEN}2` });

    expect(tokens.filter(({ name }) => name === 'dana')).toHaveLength(2);
  });

  it('serve the administration on this machine only, unless told otherwise', () => {
    expect(load({ HOST: '0.0.0.0' }).http).toMatchObject({ host: '0.0.0.0', adminHost: '127.0.0.1' });
    expect(load({ ADMIN_HOST: '10.0.0.7' }).http).toMatchObject({ host: '127.0.0.1', adminHost: '10.0.0.7' });
  });

  it.each([{ PAYMENTS: 'test' }, { WEBHOOK_ALLOW_PRIVATE: 'true' }])('refuse %p in production', (setting) => {
    const production = { ...setting, NODE_ENV: 'production' };

    expect(faultsOf(setting)).toEqual([]);
    expect(faultsOf(production)).toEqual([
      expect.stringContaining(`${Object.entries(setting)[0]?.join('=') ?? ''} is`),
    ]);
    expect(faultsOf(production, 'worker')).toHaveLength(1);
    expect(faultsOf({ ...production, ALLOW_TEST_SETTINGS: 'true' })).toEqual([]);
  });

  it('require HTTPS in production unless told otherwise', () => {
    expect(load({ NODE_ENV: 'production' }).http.requireHttps).toBe(true);
    expect(load({ NODE_ENV: 'production', REQUIRE_HTTPS: 'false' }).http.requireHttps).toBe(false);
    expect(load({ REQUIRE_HTTPS: 'true' }).http.requireHttps).toBe(true);
  });

  it('take payments with Stripe where its key is set', () => {
    expect(load({ STRIPE_SECRET_KEY: 'sk', STRIPE_WEBHOOK_SECRET: 'wh' })).toMatchObject({
      payments: { kind: 'stripe', stripeSecretKey: 'sk', stripeWebhookSecret: 'wh' },
    });
    expect(load({ STRIPE_SECRET_KEY: 'sk', STRIPE_WEBHOOK_SECRET: 'wh', PAYMENTS: 'none' }).payments.kind).toBe('none');
  });

  it('moderate with word lists unless an endpoint is named', () => {
    const endpoint = { MODERATION_BACKEND: 'openai', MODERATION_BASE_URL: 'https://host/v1' };

    expect(load({ MODERATION_BASE_URL: 'https://host/v1' }).moderation.backend).toBe('local');
    expect(load(endpoint).moderation).toEqual({ backend: 'openai', baseUrl: 'https://host/v1', timeoutMs: 5_000 });
    expect(load({ ...endpoint, MODERATION_API_KEY: 'k', MODERATION_MODEL: 'm' }).moderation).toMatchObject({
      apiKey: 'k',
      model: 'm',
    });
  });

  it.each([
    ['a moderation backend that does not exist', { MODERATION_BACKEND: 'none' }, /MODERATION_BACKEND/],
    [
      'a moderation endpoint without an address',
      { MODERATION_BACKEND: 'openai' },
      /^MODERATION_BASE_URL is required with MODERATION_BACKEND=openai\.$/,
    ],
    [
      'a credential that no header takes',
      { MODERATION_API_KEY: 'a b' },
      /^MODERATION_API_KEY must .* without spaces\.$/,
    ],
    ['a word that is not true or false', { METRICS_PUBLIC: 'yes' }, /^METRICS_PUBLIC must be true or false\.$/],
    ['a time below one that may be 0', { DISCONNECT_GRACE_SECONDS: '-1' }, /^DISCONNECT_GRACE_SECONDS must .* 0\.$/],
    ['a port that does not exist', { WORKER_PORT: '65536' }, /^WORKER_PORT must be a port, 0 to 65535\.$/],
    ['a MongoDB that is none', { MONGODB_URI: 'http://u:pa55@h/parley' }, /^MONGODB_URI must be mongodb:\/\/HOST/],
    ['a MongoDB without a host', { MONGODB_URI: 'mongodb:///parley' }, /^MONGODB_URI must be mongodb:\/\/HOST/],
    ['an address with a credential', { MODERATION_BASE_URL: 'https://u:p@host/v1' }, /MODERATION_BASE_URL/],
    ['an address that is none', { MODERATION_BASE_URL: 'host/v1' }, /MODERATION_BASE_URL/],
    ['a verdict that may take for ever', { MODERATION_TIMEOUT_MS: '600000' }, /MODERATION_TIMEOUT_MS/],
    ['a token an attacker could guess', { ADMIN_TOKEN: 'a'.repeat(31) }, /ADMIN_TOKEN .*32/],
    ['a token of one character', { ADMIN_TOKEN: 'a'.repeat(64) }, /ADMIN_TOKEN .*6 of them different/],
    ['a metrics token that is short', { METRICS_TOKEN: 'scrape' }, /METRICS_TOKEN .*32/],
    ['a list of no token', { ADMIN_TOKENS: ' , ' }, /ADMIN_TOKENS .*name:role:token/],
    ['a token without a role', { ADMIN_TOKENS: `dana:${TOKEN}` }, /ADMIN_TOKENS .*name:role:token/],
    ['a role that does not exist', { ADMIN_TOKENS: `dana:root:${TOKEN}` }, /ADMIN_TOKENS .*name:role:token/],
    ['a weak token in the list', { ADMIN_TOKENS: 'dana:write:hunter2' }, /ADMIN_TOKENS .*32/],
    ['one token for two names', { ADMIN_TOKENS: `a:read:${TOKEN}x,b:read:${TOKEN}x` }, /ADMIN_TOKENS .*twice/],
    ['a second credentials key of 3 bytes', { CREDENTIALS_KEYS: 'c2Vj' }, /CREDENTIALS_KEYS .*32 bytes/],
    ['a credentials key of 16 bytes', { CREDENTIALS_KEY: Buffer.alloc(16).toString('base64') }, /32 bytes in base64/],
    [
      'half of a TLS pair',
      { TLS_CERT_FILE: 'cert.pem' },
      /^TLS_CERT_FILE needs TLS_KEY_FILE beside it; set both or neither\.$/,
    ],
    [
      'half of the Stripe pair',
      { STRIPE_WEBHOOK_SECRET: 'wh' },
      /^STRIPE_WEBHOOK_SECRET needs STRIPE_SECRET_KEY beside it; set both or neither\.$/,
    ],
    ['Stripe without its key', { PAYMENTS: 'stripe' }, /^STRIPE_SECRET_KEY is required with PAYMENTS=stripe\.$/],
    ['a key prefix that no key could have', { KEY_PREFIX: 'Svc_' }, /^KEY_PREFIX must have 2 to 16 .* letters/],
    ['a fraction of a shard', { QUEUE_SHARDS: '1.5' }, /QUEUE_SHARDS must be an integer/],
    [
      'a Redis address with a port that does not exist',
      { REDIS_URL: 'redis://127.0.0.1:99999' },
      /REDIS_URL .*HOST:PORT/,
    ],
    ['a Redis address whose password is not encoded', { REDIS_URL: 'redis://:pa#ss@h:1' }, /REDIS_URL .*HOST:PORT/],
    ['a Redis database that is no number', { REDIS_URL: 'redis://:pa55@h:1/abc' }, /^REDIS_URL must end in the number/],
    [
      'a password of sentinels where there are none',
      { REDIS_SENTINEL_PASSWORD: 'x' },
      /REDIS_SENTINEL_PASSWORD is of sentinels/,
    ],
    ['a proxy that is no address', { TRUST_PROXY: 'loopback,proxy.internal' }, /TRUST_PROXY/],
    ['every proxy of the world by number', { TRUST_PROXY: '1' }, /TRUST_PROXY/],
    ['a block that is too wide', { TRUST_PROXY: '10.0.0.0/33' }, /TRUST_PROXY/],
    ['every address as a proxy', { TRUST_PROXY: '10.0.0.7,0.0.0.0/0' }, /TRUST_PROXY .*not everybody \(\/0\)/],
    ['every address of IPv6 as a proxy', { TRUST_PROXY: '::/0' }, /TRUST_PROXY/],
    ['an origin with a path', { CORS_ORIGINS: 'https://app.example.com/' }, /CORS_ORIGINS/],
    ['an origin without a scheme', { CORS_ORIGINS: 'app.example.com' }, /CORS_ORIGINS/],
  ])('the settings refuse %s', (_what, env, fault) => {
    expect(faultsOf(env)).toEqual([expect.stringMatching(fault)]);
  });

  it.each([
    'redis://u:p@h:1/0',
    'rediss://h',
    'redis://[::1]:1',
    'redis+cluster://:p@[::1]:1,h2',
    'redis+cluster://h1:1,h2:2',
    'redis+sentinel://h1:1,h2:2/mymaster',
  ])('the settings accept the Redis address %s', (url) => {
    expect(load({ REDIS_URL: url }).redis.url).toBe(url);
  });

  it('the settings bring what sentinels ask for to whoever opens connections', () => {
    const { redis } = load({
      REDIS_URL: 'redis+sentinel://:a@h1:1/mymaster',
      REDIS_SENTINEL_USERNAME: 'watch',
      REDIS_SENTINEL_PASSWORD: 'p&ss w/rd',
      REDIS_SENTINEL_TLS: 'true',
    });
    expect(parseRedisUrl(redis.url)).toMatchObject({
      password: 'a',
      isEncrypted: false,
      sentinels: { username: 'watch', password: 'p&ss w/rd', isEncrypted: true },
    });
  });

  it('the settings accept lists with spaces', () => {
    const { http } = load({
      TRUST_PROXY: ' loopback, 10.0.0.0/8 , 2001:db8::1,',
      CORS_ORIGINS: 'https://a.example, http://localhost:3000',
    });
    expect(http.trustProxy).toEqual(['loopback', '10.0.0.0/8', '2001:db8::1']);
    expect(http.corsOrigins).toEqual(['https://a.example', 'http://localhost:3000']);
  });
});

describe('a secret in a file', () => {
  let folder: string;
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'parley-secrets-'));
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it('is read without its line break, whichever secret it is', () => {
    const config = load({
      ADMIN_TOKEN: '',
      ADMIN_TOKEN_FILE: write('token', `${TOKEN}\n`),
      REDIS_URL: undefined,
      REDIS_URL_FILE: write('redis', 'redis://:p@h:1\n'),
      STRIPE_SECRET_KEY_FILE: write('stripe', 'sk_test\n'),
      STRIPE_WEBHOOK_SECRET_FILE: write('hook', 'whsec_1\n'),
    });

    expect(config.admin.token).toBe(TOKEN);
    expect(config.redis.url).toBe('redis://:p@h:1');
    expect(config.payments).toEqual({ kind: 'stripe', stripeSecretKey: 'sk_test', stripeWebhookSecret: 'whsec_1' });
  });

  it('is refused beside the setting itself, and where it cannot be read or is none', () => {
    expect(faultsOf({ METRICS_TOKEN: TOKEN, METRICS_TOKEN_FILE: write('both', TOKEN) })).toEqual([
      'METRICS_TOKEN and METRICS_TOKEN_FILE are both set; remove one of them.',
    ]);
    expect(faultsOf({ METRICS_TOKEN_FILE: join(folder, 'absent') })).toEqual([
      'METRICS_TOKEN_FILE names a file that cannot be read; check its path and who may read it.',
    ]);
    expect(faultsOf({ METRICS_TOKEN_FILE: write('empty', '\n') })).toEqual([
      expect.stringContaining('METRICS_TOKEN is not allowed to be empty'),
    ]);
  });
});

describe('a name that is no setting', () => {
  it.each([
    ['WORKER_CONCURENCY', 'WORKER_CONCURRENCY'],
    ['MONGODB_URL', 'MONGODB_URI'],
    ['redis_url', 'REDIS_URL'],
    ['ADMIN_TOKEN_FILES', undefined],
    ['HOME', undefined],
    ['PATH', undefined],
    ['REDIS_PORT', undefined],
    ['ADMIN_TOKEN_FILE', undefined],
    ['PORT', undefined],
  ])('%s is said to look like %s', (name, meant) => {
    expect(adviceOnNames({ [name]: 'x' })).toEqual(
      meant === undefined ? [] : [`${name} is no setting and changes nothing; did you mean ${meant}?`],
    );
  });
});
