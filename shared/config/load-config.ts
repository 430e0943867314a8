import Joi from 'joi';

import { moderationOf } from './moderation-backend-settings.ts';
import type { ModerationBackendSettings, ModerationConfig } from './moderation-backend-settings.ts';
import {
  adminTokenList,
  adminTokensOf,
  base64Key,
  base64Keys,
  SECRET_MESSAGES,
  strongToken,
} from './secret-settings.ts';
import type { AdminToken } from './secret-settings.ts';
import {
  baseUrl,
  isOrigin,
  isProxy,
  listOf,
  port,
  redisUrl,
  redisUrlOf,
  RULE_MESSAGES,
  seconds,
  withRedisTls,
  withSentinel,
} from './setting-rules.ts';
import type { RedisSettings } from './setting-rules.ts';
import { sampler, tracingOf } from './tracing-settings.ts';
import type { TracingConfig, TracingSettings } from './tracing-settings.ts';

/** Settings of docs/spec/contract.md section 1, nested by subject. Times end in their unit. */
export interface Config {
  http: {
    host: string;
    port: number;
    adminHost: string;
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
  /** Of `ADMIN_TOKENS`, and that of `ADMIN_TOKEN`. */
  adminTokens: AdminToken[];
  /** Who reads `/metrics` and `/health/deep` from elsewhere: everybody, or whoever has the token. */
  metrics: { isPublic: boolean; token?: string };
  /** 32 bytes: encrypts credentials. */
  credentialsKey: Buffer;
  /** Other keys with which stored credentials can be read. */
  credentialsKeys: Buffer[];
  /** Providers on public hosts may be called over plain http. */
  providers: { allowHttp: boolean };
  keyPrefix: string;
  logLevel: string;
  worker: { concurrency: number; batchConcurrency: number };
  /** `completedKept`: of each queue, for Bull Board. */
  queue: { shards: number; maxWaiting: number; completedKept: number };
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
  /** Undefined: nothing is traced. */
  tracing?: TracingConfig;
}

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

const schema = Joi.object({
  NODE_ENV: Joi.string().default('development'),
  HOST: Joi.string().default('127.0.0.1'),
  PORT: port().default(8080),
  ADMIN_HOST: Joi.string().default('127.0.0.1'),
  ADMIN_PORT: port().default(8081),
  WORKER_PORT: port().allow(0).default(0),
  MAX_CONNECTIONS: Joi.number().integer().min(1).max(1_000_000).default(20_000),
  REDIS_URL: redisUrl.required(),
  REDIS_SENTINEL_USERNAME: withSentinel(Joi.string()),
  REDIS_SENTINEL_PASSWORD: withSentinel(Joi.string()),
  REDIS_SENTINEL_TLS: withSentinel(Joi.boolean()),
  REDIS_TLS_CA_FILE: withRedisTls(Joi.string()),
  REDIS_TLS_CERT_FILE: withRedisTls(Joi.string()),
  REDIS_TLS_KEY_FILE: withRedisTls(Joi.string()),
  MONGODB_URI: Joi.string()
    .pattern(/^mongodb(\+srv)?:\/\/.+/)
    .required(),
  ADMIN_TOKEN: strongToken,
  ADMIN_TOKENS: adminTokenList,
  METRICS_PUBLIC: Joi.boolean().default(false),
  METRICS_TOKEN: strongToken,
  CREDENTIALS_KEY: base64Key.required(),
  CREDENTIALS_KEYS: base64Keys.default([]),
  KEY_PREFIX: Joi.string()
    .pattern(/^[a-z][a-z0-9]{1,15}$/)
    .default('svc'),
  WORKER_CONCURRENCY: Joi.number().integer().min(1).max(100_000).default(512),
  WORKER_BATCH_CONCURRENCY: Joi.number().integer().min(1).max(100_000).default(64),
  QUEUE_SHARDS: Joi.number().integer().min(1).max(1_024).default(1),
  QUEUE_MAX_WAITING: Joi.number().integer().min(1).max(10_000_000).default(10_000),
  COMPLETED_JOBS_KEPT: Joi.number().integer().min(0).max(10_000).default(200),
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
  PROVIDER_ALLOW_HTTP: Joi.boolean().default(false),
  ALLOW_TEST_SETTINGS: Joi.boolean().default(false),
  PAYMENTS: Joi.string().valid('stripe', 'test', 'none'),
  STRIPE_SECRET_KEY: Joi.string().when('PAYMENTS', { is: 'stripe', then: Joi.required() }),
  STRIPE_WEBHOOK_SECRET: Joi.string(),
  WEBHOOK_ALLOW_PRIVATE: Joi.boolean().default(false),
  TLS_CERT_FILE: Joi.string(),
  TLS_KEY_FILE: Joi.string(),
  TRUST_PROXY: listOf(isProxy, 'proxy.address').default([]),
  REQUIRE_HTTPS: Joi.boolean().default(Joi.ref('NODE_ENV', { adjust: (value: unknown) => value === 'production' })),
  CORS_ORIGINS: listOf(isOrigin, 'origin.form').default([]),
  OTEL_EXPORTER_OTLP_ENDPOINT: baseUrl,
  OTEL_SERVICE_NAME: Joi.string().max(256),
  OTEL_TRACES_SAMPLER: sampler,
  OTEL_TRACES_SAMPLER_ARG: Joi.number().min(0).max(1).default(1),
})
  .and('TLS_CERT_FILE', 'TLS_KEY_FILE')
  .and('REDIS_TLS_CERT_FILE', 'REDIS_TLS_KEY_FILE')
  .and('STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET')
  .messages({ ...RULE_MESSAGES, ...SECRET_MESSAGES });

/** The checked environment: joi has filled in every default. */
interface Settings extends ModerationBackendSettings, RedisSettings, TracingSettings {
  HOST: string;
  PORT: number;
  ADMIN_HOST: string;
  ADMIN_PORT: number;
  WORKER_PORT: number;
  MAX_CONNECTIONS: number;
  MONGODB_URI: string;
  ADMIN_TOKEN?: string;
  ADMIN_TOKENS?: AdminToken[];
  METRICS_PUBLIC: boolean;
  METRICS_TOKEN?: string;
  CREDENTIALS_KEY: Buffer;
  CREDENTIALS_KEYS: Buffer[];
  KEY_PREFIX: string;
  WORKER_CONCURRENCY: number;
  WORKER_BATCH_CONCURRENCY: number;
  QUEUE_SHARDS: number;
  QUEUE_MAX_WAITING: number;
  COMPLETED_JOBS_KEPT: number;
  LOG_LEVEL: string;
  STREAM_RETENTION_SECONDS: number;
  DISCONNECT_GRACE_SECONDS: number;
  REQUEST_TIMEOUT_SECONDS: number;
  SHUTDOWN_GRACE_SECONDS: number;
  PROVIDER_ALLOW_HTTP: boolean;
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
  const checked = schema.validate(given, {
    abortEarly: false,
    stripUnknown: true,
    errors: { wrap: { label: false } },
  }) as Joi.ValidationResult<Settings>;
  const faults = (checked.error?.details ?? []).map((detail) => `${detail.message}.`);
  if (kind === 'api' && given['ADMIN_TOKEN'] === undefined && given['ADMIN_TOKENS'] === undefined)
    faults.push('ADMIN_TOKEN or ADMIN_TOKENS is required.');
  faults.push(...testSettingsIn(given));
  if (checked.error !== undefined || faults.length > 0) throw new ConfigError(faults);
  return freezeDeeply(nest(checked.value));
}

/** A copied `.env` must not give credits away, or let tenants reach what only this network may. */
function testSettingsIn(given: Record<string, string | undefined>): string[] {
  const isTrue = (name: string) => given[name]?.toLowerCase() === 'true';
  if (given['NODE_ENV'] !== 'production' || isTrue('ALLOW_TEST_SETTINGS')) return [];
  const used = [
    ...(given['PAYMENTS'] === 'test' ? ['PAYMENTS=test'] : []),
    ...(isTrue('WEBHOOK_ALLOW_PRIVATE') ? ['WEBHOOK_ALLOW_PRIVATE=true'] : []),
  ];
  return used.map(
    (setting) => `${setting} is for tests; change it, or set ALLOW_TEST_SETTINGS=true where nobody is served.`,
  );
}

function freezeDeeply<Value extends object>(value: Value): Readonly<Value> {
  for (const part of Object.values(value) as unknown[]) {
    // The bytes of a Buffer cannot be frozen.
    if (typeof part === 'object' && part !== null && !Buffer.isBuffer(part)) freezeDeeply(part);
  }
  return Object.freeze(value);
}

function nest(settings: Settings): Config {
  const stripe = settings.STRIPE_SECRET_KEY;
  const tracing = tracingOf(settings);
  const config: Config = {
    http: {
      host: settings.HOST,
      port: settings.PORT,
      adminHost: settings.ADMIN_HOST,
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
    redisUrl: redisUrlOf(settings),
    mongodbUri: settings.MONGODB_URI,
    adminTokens: adminTokensOf(settings.ADMIN_TOKEN, settings.ADMIN_TOKENS ?? []),
    metrics: {
      isPublic: settings.METRICS_PUBLIC,
      ...(settings.METRICS_TOKEN === undefined ? {} : { token: settings.METRICS_TOKEN }),
    },
    credentialsKey: settings.CREDENTIALS_KEY,
    credentialsKeys: settings.CREDENTIALS_KEYS,
    providers: { allowHttp: settings.PROVIDER_ALLOW_HTTP },
    keyPrefix: settings.KEY_PREFIX,
    logLevel: settings.LOG_LEVEL,
    worker: { concurrency: settings.WORKER_CONCURRENCY, batchConcurrency: settings.WORKER_BATCH_CONCURRENCY },
    queue: {
      shards: settings.QUEUE_SHARDS,
      maxWaiting: settings.QUEUE_MAX_WAITING,
      completedKept: settings.COMPLETED_JOBS_KEPT,
    },
    limits: {
      streamRetentionSeconds: settings.STREAM_RETENTION_SECONDS,
      disconnectGraceSeconds: settings.DISCONNECT_GRACE_SECONDS,
      requestTimeoutSeconds: settings.REQUEST_TIMEOUT_SECONDS,
      shutdownGraceSeconds: settings.SHUTDOWN_GRACE_SECONDS,
    },
    moderation: moderationOf(settings),
    payments: settings.PAYMENTS ?? (stripe === undefined ? 'none' : 'stripe'),
    webhooks: { allowPrivate: settings.WEBHOOK_ALLOW_PRIVATE },
    ...(tracing === undefined ? {} : { tracing }),
  };
  if (stripe !== undefined && settings.STRIPE_WEBHOOK_SECRET !== undefined) {
    config.stripe = { secretKey: stripe, webhookSecret: settings.STRIPE_WEBHOOK_SECRET };
  }
  return config;
}
