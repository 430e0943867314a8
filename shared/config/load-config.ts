import { isIP } from 'node:net';

import Joi from 'joi';

/** Settings of docs/spec/contract.md section 1, nested by subject. Times end in their unit. */
export interface Config {
  http: {
    host: string;
    port: number;
    adminPort: number;
    workerPort: number;
    maxConnections: number;
    trustProxy: string[];
    requireHttps: boolean;
    corsOrigins: string[];
    tls?: { certFile: string; keyFile: string };
  };
  redisUrl: string;
  mongodbUri: string;
  adminToken: string;
  /** 32 bytes. */
  credentialsKey: Buffer;
  keyPrefix: string;
  logLevel: string;
  worker: { concurrency: number; batchConcurrency: number };
  queue: { shards: number; maxWaiting: number };
  limits: {
    streamRetentionSeconds: number;
    disconnectGraceSeconds: number;
    requestTimeoutSeconds: number;
    shutdownGraceSeconds: number;
  };
  moderation: ModerationConfig;
  payments: 'stripe' | 'test' | 'none';
  stripe?: { secretKey: string; webhookSecret: string };
  /** `allowPrivate`: receivers on private addresses and over plain http, for development. */
  webhooks: { allowPrivate: boolean };
}

/** Who reads what goes in and comes out: the word lists of this service, or an endpoint that speaks OpenAI's protocol. */
export type ModerationConfig =
  { backend: 'local' } | { backend: 'openai'; baseUrl: string; apiKey?: string; model?: string; timeoutMs: number };

/** Which process asks: a worker needs no admin token, an ingress no worker port. */
export type ProcessKind = 'api' | 'worker';

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      `${faults.length === 1 ? 'A setting is' : `${faults.length} settings are`} wrong:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
    this.faults = faults;
  }
}

const port = () => Joi.number().port();
const seconds = (max: number) => Joi.number().integer().min(1).max(max);

const REDIS_SCHEMES = ['redis:', 'rediss:', 'redis+cluster:', 'redis+sentinel:', 'rediss+cluster:', 'rediss+sentinel:'];

const redisUrl = Joi.string().custom((value: string, helpers) => {
  if (!REDIS_SCHEMES.some((scheme) => value.startsWith(`${scheme}//`)) || value.split('//')[1] === '')
    return helpers.error('redis.url');
  return /^rediss?\+sentinel:\/\/[^/]*\/?$/.test(value) ? helpers.error('redis.master') : value;
});

/** Paths are appended to it, and a credential in it would end up in logs. */
const baseUrl = Joi.string().custom((value: string, helpers) => {
  const url = URL.parse(value);
  const isPlain = url !== null && url.username === '' && url.password === '' && !/[?#\s]/.test(value);
  return isPlain && ['http:', 'https:'].includes(url.protocol) ? value : helpers.error('base.url');
});

const base64Key = Joi.string().custom((value: string, helpers) => {
  const key = Buffer.from(value, 'base64');
  return key.length === 32 ? key : helpers.error('key.length');
});

function listOf(isValid: (part: string) => boolean, fault: string) {
  return Joi.string()
    .allow('')
    .custom((value: string, helpers) => {
      const parts = value
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '');
      return parts.every(isValid) ? parts : helpers.error(fault);
    });
}

/** What Express takes for `trust proxy`: an address, a block of them, or one of its names for private ones. */
function isProxy(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/');
  const family = isIP(address);
  if (family === 0) return ['loopback', 'linklocal', 'uniquelocal'].includes(value);
  return rest.length === 0 && (bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)));
}

function isOrigin(value: string): boolean {
  return /^https?:/.test(value) && URL.parse(value)?.origin === value;
}

const schema = Joi.object({
  NODE_ENV: Joi.string().default('development'),
  HOST: Joi.string().default('127.0.0.1'),
  PORT: port().default(8080),
  ADMIN_PORT: port().default(8081),
  WORKER_PORT: port().allow(0).default(0),
  MAX_CONNECTIONS: Joi.number().integer().min(1).max(1_000_000).default(20_000),
  REDIS_URL: redisUrl.required(),
  MONGODB_URI: Joi.string()
    .pattern(/^mongodb(\+srv)?:\/\/.+/)
    .required(),
  ADMIN_TOKEN: Joi.string().min(32),
  CREDENTIALS_KEY: base64Key.required(),
  KEY_PREFIX: Joi.string()
    .pattern(/^[a-z][a-z0-9]{1,15}$/)
    .default('svc'),
  WORKER_CONCURRENCY: Joi.number().integer().min(1).max(100_000).default(512),
  WORKER_BATCH_CONCURRENCY: Joi.number().integer().min(1).max(100_000).default(64),
  QUEUE_SHARDS: Joi.number().integer().min(1).max(1_024).default(1),
  QUEUE_MAX_WAITING: Joi.number().integer().min(1).max(10_000_000).default(10_000),
  LOG_LEVEL: Joi.string().valid('error', 'warn', 'info', 'debug').default('info'),
  STREAM_RETENTION_SECONDS: seconds(86_400).default(900),
  DISCONNECT_GRACE_SECONDS: seconds(3_600).allow(0).default(30),
  REQUEST_TIMEOUT_SECONDS: seconds(3_600).default(600),
  SHUTDOWN_GRACE_SECONDS: seconds(3_600).default(30),
  MODERATION_BACKEND: Joi.string().valid('local', 'openai').default('local'),
  MODERATION_BASE_URL: baseUrl.when('MODERATION_BACKEND', { is: 'openai', then: Joi.required() }),
  MODERATION_API_KEY: Joi.string().pattern(/^[\x21-\x7e]+$/),
  MODERATION_MODEL: Joi.string().max(256),
  MODERATION_TIMEOUT_MS: Joi.number().integer().min(100).max(60_000).default(5_000),
  PAYMENTS: Joi.string().valid('stripe', 'test', 'none'),
  STRIPE_SECRET_KEY: Joi.string().when('PAYMENTS', { is: 'stripe', then: Joi.required() }),
  STRIPE_WEBHOOK_SECRET: Joi.string(),
  WEBHOOK_ALLOW_PRIVATE: Joi.boolean().default(false),
  TLS_CERT_FILE: Joi.string(),
  TLS_KEY_FILE: Joi.string(),
  TRUST_PROXY: listOf(isProxy, 'proxy.address').default([]),
  REQUIRE_HTTPS: Joi.boolean().default(Joi.ref('NODE_ENV', { adjust: (value: unknown) => value === 'production' })),
  CORS_ORIGINS: listOf(isOrigin, 'origin.form').default([]),
})
  .and('TLS_CERT_FILE', 'TLS_KEY_FILE')
  .and('STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET')
  .messages({
    'redis.url':
      '{{#label}} must be redis://, redis+cluster://h1:p1,h2:p2 or redis+sentinel://h1:p1,h2:p2/name, or one of them with rediss for TLS',
    'redis.master': '{{#label}} must end in the name of the master, as in redis+sentinel://h1:26379,h2:26379/mymaster',
    'proxy.address':
      '{{#label}} must be a list of addresses or blocks (10.0.0.0/8), loopback, linklocal or uniquelocal, parted by commas',
    'origin.form': '{{#label}} must be a list of origins such as https://app.example.com, parted by commas',
    'base.url': '{{#label}} must be an http or https URL without credentials, query and fragment',
    'key.length': '{{#label}} must be 32 bytes in base64; make one with: openssl rand -base64 32',
    'string.pattern.base': '{{#label}} does not have the expected form ({{#regex}})',
  });

/** The checked environment: joi has filled in every default. */
interface Settings {
  HOST: string;
  PORT: number;
  ADMIN_PORT: number;
  WORKER_PORT: number;
  MAX_CONNECTIONS: number;
  REDIS_URL: string;
  MONGODB_URI: string;
  ADMIN_TOKEN?: string;
  CREDENTIALS_KEY: Buffer;
  KEY_PREFIX: string;
  WORKER_CONCURRENCY: number;
  WORKER_BATCH_CONCURRENCY: number;
  QUEUE_SHARDS: number;
  QUEUE_MAX_WAITING: number;
  LOG_LEVEL: string;
  STREAM_RETENTION_SECONDS: number;
  DISCONNECT_GRACE_SECONDS: number;
  REQUEST_TIMEOUT_SECONDS: number;
  SHUTDOWN_GRACE_SECONDS: number;
  MODERATION_BACKEND: 'local' | 'openai';
  MODERATION_BASE_URL?: string;
  MODERATION_API_KEY?: string;
  MODERATION_MODEL?: string;
  MODERATION_TIMEOUT_MS: number;
  PAYMENTS?: 'stripe' | 'test' | 'none';
  STRIPE_SECRET_KEY?: string;
  STRIPE_WEBHOOK_SECRET?: string;
  WEBHOOK_ALLOW_PRIVATE: boolean;
  TLS_CERT_FILE?: string;
  TLS_KEY_FILE?: string;
  TRUST_PROXY: string[];
  REQUIRE_HTTPS: boolean;
  CORS_ORIGINS: string[];
}

/**
 * Checks the whole environment at once. An empty value counts as absent, as in a `.env` file.
 * Throws a ConfigError that lists every fault.
 */
export function loadConfig(env: Record<string, string | undefined>, kind: ProcessKind): Readonly<Config> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const wanted = kind === 'api' ? schema.fork('ADMIN_TOKEN', (field) => field.required()) : schema;
  const checked = wanted.validate(given, {
    abortEarly: false,
    stripUnknown: true,
    errors: { wrap: { label: false } },
  }) as Joi.ValidationResult<Settings>;
  if (checked.error !== undefined) throw new ConfigError(checked.error.details.map((detail) => `${detail.message}.`));
  return freezeDeeply(nest(checked.value));
}

function freezeDeeply<Value extends object>(value: Value): Readonly<Value> {
  for (const part of Object.values(value) as unknown[]) {
    // The bytes of a Buffer cannot be frozen.
    if (typeof part === 'object' && part !== null && !Buffer.isBuffer(part)) freezeDeeply(part);
  }
  return Object.freeze(value);
}

function moderationOf(settings: Settings): ModerationConfig {
  const { MODERATION_BASE_URL: url, MODERATION_API_KEY: apiKey, MODERATION_MODEL: model } = settings;
  if (settings.MODERATION_BACKEND === 'local' || url === undefined) return { backend: 'local' };
  return {
    backend: 'openai',
    baseUrl: url,
    timeoutMs: settings.MODERATION_TIMEOUT_MS,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(model === undefined ? {} : { model }),
  };
}

function nest(settings: Settings): Config {
  const stripe = settings.STRIPE_SECRET_KEY;
  const config: Config = {
    http: {
      host: settings.HOST,
      port: settings.PORT,
      adminPort: settings.ADMIN_PORT,
      workerPort: settings.WORKER_PORT,
      maxConnections: settings.MAX_CONNECTIONS,
      trustProxy: settings.TRUST_PROXY,
      requireHttps: settings.REQUIRE_HTTPS,
      corsOrigins: settings.CORS_ORIGINS,
      ...(settings.TLS_CERT_FILE === undefined || settings.TLS_KEY_FILE === undefined
        ? {}
        : { tls: { certFile: settings.TLS_CERT_FILE, keyFile: settings.TLS_KEY_FILE } }),
    },
    redisUrl: settings.REDIS_URL,
    mongodbUri: settings.MONGODB_URI,
    adminToken: settings.ADMIN_TOKEN ?? '',
    credentialsKey: settings.CREDENTIALS_KEY,
    keyPrefix: settings.KEY_PREFIX,
    logLevel: settings.LOG_LEVEL,
    worker: { concurrency: settings.WORKER_CONCURRENCY, batchConcurrency: settings.WORKER_BATCH_CONCURRENCY },
    queue: { shards: settings.QUEUE_SHARDS, maxWaiting: settings.QUEUE_MAX_WAITING },
    limits: {
      streamRetentionSeconds: settings.STREAM_RETENTION_SECONDS,
      disconnectGraceSeconds: settings.DISCONNECT_GRACE_SECONDS,
      requestTimeoutSeconds: settings.REQUEST_TIMEOUT_SECONDS,
      shutdownGraceSeconds: settings.SHUTDOWN_GRACE_SECONDS,
    },
    moderation: moderationOf(settings),
    payments: settings.PAYMENTS ?? (stripe === undefined ? 'none' : 'stripe'),
    webhooks: { allowPrivate: settings.WEBHOOK_ALLOW_PRIVATE },
  };
  if (stripe !== undefined && settings.STRIPE_WEBHOOK_SECRET !== undefined) {
    config.stripe = { secretKey: stripe, webhookSecret: settings.STRIPE_WEBHOOK_SECRET };
  }
  return config;
}
