import type { ValidationResult } from 'joi';

import { adminTokensOf } from './secret-settings.ts';
import type { AdminToken } from './secret-settings.ts';
import { redisUrlOf } from './setting-rules.ts';
import { moderationOf, settingsSchema, tracingOf } from './settings-schema.ts';
import type { ModerationConfig, Settings, TracingConfig } from './settings-schema.ts';

/** Settings of docs/spec.md#settings, nested by subject. Times end in their unit. */
export interface Config {
  http: {
    host: string;
    port: number;
    adminHost: string;
    adminPort: number;
    workerPort: number;
    maxConnections: number;
    keepAliveMs: number;
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

/**
 * Checks the whole environment at once. An empty value counts as absent, as in a `.env` file.
 * Throws a ConfigError that lists every fault.
 */
export function loadConfig(env: Record<string, string | undefined>, kind: ProcessKind): Readonly<Config> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const checked = settingsSchema.validate(given, {
    abortEarly: false,
    stripUnknown: true,
    errors: { wrap: { label: false } },
  }) as ValidationResult<Settings>;
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
      keepAliveMs: settings.KEEP_ALIVE_SECONDS * 1000,
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

/** The environment of this process; the only place that reads it. */
export const environment: Record<string, string | undefined> = process.env;
