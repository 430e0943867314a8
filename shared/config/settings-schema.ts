import Joi from 'joi';

import { SECRET_MESSAGES, adminTokenList, base64Key, base64Keys, strongToken } from './secret-settings.ts';
import type { AdminToken } from './secret-settings.ts';
import {
  RULE_MESSAGES,
  baseUrl,
  isOrigin,
  isProxy,
  listOf,
  mongoUri,
  port,
  redisUrl,
  seconds,
  withRedisTls,
  withSentinel,
} from './setting-rules.ts';
import type { RedisSettings } from './setting-rules.ts';

/** The settings of moderation, checked. */
export interface ModerationBackendSettings {
  MODERATION_BACKEND: 'local' | 'openai';
  MODERATION_BASE_URL?: string;
  MODERATION_API_KEY?: string;
  MODERATION_MODEL?: string;
  MODERATION_TIMEOUT_MS: number;
}

/** Who reads what goes in and comes out: the word lists of this service, or an endpoint that speaks OpenAI's protocol. */
export type ModerationConfig =
  { backend: 'local' } | { backend: 'openai'; baseUrl: string; apiKey?: string; model?: string; timeoutMs: number };

/** The schema has made sure that `openai` has its endpoint. */
export function moderationOf(settings: ModerationBackendSettings): ModerationConfig {
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

const ROOTS = ['always_on', 'always_off', 'traceidratio'];

/** Those of OpenTelemetry's samplers that need no other service. */
const sampler = Joi.string()
  .valid(...ROOTS, ...ROOTS.map((root) => `parentbased_${root}`))
  .default('parentbased_always_on');

/** OpenTelemetry's own variables, as far as they are read here. */
export interface TracingSettings {
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  OTEL_SERVICE_NAME?: string;
  OTEL_TRACES_SAMPLER: string;
  OTEL_TRACES_SAMPLER_ARG: number;
}

export interface TracingConfig {
  /** `/v1/traces` is appended to it. */
  endpoint: string;
  serviceName?: string;
  sampler: string;
  /** The share of traces that `traceidratio` takes, 0 to 1. */
  samplerArg: number;
}

/** Undefined: there is no collector, so nothing is traced. */
export function tracingOf(settings: TracingSettings): TracingConfig | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: serviceName } = settings;
  if (endpoint === undefined) return undefined;
  return {
    endpoint,
    sampler: settings.OTEL_TRACES_SAMPLER,
    samplerArg: settings.OTEL_TRACES_SAMPLER_ARG,
    ...(serviceName === undefined ? {} : { serviceName }),
  };
}

const neededWith = (setting: string) =>
  Joi.required().messages({ 'any.required': `{{#label}} is required with ${setting}` });

/** Every variable of the environment (docs/spec.md#settings) with its bounds and its default. */
export const settingsSchema = Joi.object({
  NODE_ENV: Joi.string().valid('development', 'production', 'test').default('development'),
  HOST: Joi.string().default('127.0.0.1'),
  PORT: port().default(8080),
  ADMIN_HOST: Joi.string().default('127.0.0.1'),
  ADMIN_PORT: port().default(8081),
  WORKER_PORT: port().default(0),
  MAX_CONNECTIONS: Joi.number().integer().min(1).max(1_000_000).default(20_000),
  KEEP_ALIVE_SECONDS: seconds(3_600).default(620),
  REDIS_URL: redisUrl.required(),
  REDIS_SENTINEL_USERNAME: withSentinel(Joi.string()),
  REDIS_SENTINEL_PASSWORD: withSentinel(Joi.string()),
  REDIS_SENTINEL_TLS: withSentinel(Joi.boolean()),
  REDIS_TLS_CA_FILE: withRedisTls(Joi.string()),
  REDIS_TLS_CERT_FILE: withRedisTls(Joi.string()),
  REDIS_TLS_KEY_FILE: withRedisTls(Joi.string()),
  MONGODB_URI: mongoUri.required(),
  ADMIN_TOKEN: strongToken,
  ADMIN_TOKENS: adminTokenList,
  METRICS_PUBLIC: Joi.boolean().default(false),
  METRICS_TOKEN: strongToken,
  CREDENTIALS_KEY: base64Key.required(),
  CREDENTIALS_KEYS: base64Keys.default([]),
  KEY_PREFIX: Joi.string()
    .pattern(/^[a-z][a-z0-9]{1,15}$/)
    .message('{{#label}} must have 2 to 16 lower-case letters and digits, the first of them a letter')
    .default('svc'),
  WORKER_CONCURRENCY: Joi.number().integer().min(1).max(100_000).default(512),
  WORKER_BATCH_CONCURRENCY: Joi.number().integer().min(1).max(100_000).default(64),
  QUEUE_SHARDS: Joi.number().integer().min(1).max(1_024).default(1),
  QUEUE_MAX_WAITING: Joi.number().integer().min(1).max(10_000_000).default(10_000),
  COMPLETED_JOBS_KEPT: Joi.number().integer().min(0).max(10_000).default(200),
  LOG_LEVEL: Joi.string().valid('error', 'warn', 'info', 'debug').default('info'),
  STREAM_RETENTION_SECONDS: seconds(86_400).default(900),
  DISCONNECT_GRACE_SECONDS: seconds(3_600).min(0).default(30),
  REQUEST_TIMEOUT_SECONDS: seconds(3_600).default(600),
  SHUTDOWN_GRACE_SECONDS: seconds(3_600).default(30),
  MODERATION_BACKEND: Joi.string().valid('local', 'openai').default('local'),
  MODERATION_BASE_URL: baseUrl.when('MODERATION_BACKEND', {
    is: 'openai',
    then: neededWith('MODERATION_BACKEND=openai'),
  }),
  MODERATION_API_KEY: Joi.string()
    .pattern(/^[\x21-\x7e]+$/)
    .message('{{#label}} must be visible ASCII characters without spaces'),
  MODERATION_MODEL: Joi.string().max(256),
  MODERATION_TIMEOUT_MS: Joi.number().integer().min(100).max(60_000).default(5_000),
  PROVIDER_ALLOW_HTTP: Joi.boolean().default(false),
  ALLOW_TEST_SETTINGS: Joi.boolean().default(false),
  PAYMENTS: Joi.string().valid('stripe', 'test', 'none'),
  STRIPE_SECRET_KEY: Joi.string().when('PAYMENTS', { is: 'stripe', then: neededWith('PAYMENTS=stripe') }),
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
export interface Settings extends ModerationBackendSettings, RedisSettings, TracingSettings {
  HOST: string;
  PORT: number;
  ADMIN_HOST: string;
  ADMIN_PORT: number;
  WORKER_PORT: number;
  MAX_CONNECTIONS: number;
  KEEP_ALIVE_SECONDS: number;
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
