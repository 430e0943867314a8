import Joi from 'joi';

import { SECRET_MESSAGES, adminTokenList, base64Key, base64Keys, strongToken } from './secret-settings.ts';
import {
  RULE_MESSAGES,
  baseUrl,
  headerValue,
  integer,
  isOrigin,
  isProxy,
  keyPrefix,
  listOf,
  mongoUri,
  neededWith,
  oneOf,
  port,
  redisUrl,
  sampler,
  withRedisTls,
  withSentinel,
} from './setting-rules.ts';

/** `Value` is what joi makes of the variable. */
export interface Setting<Value = unknown> {
  name: string;
  readBy: string;
  rule: Joi.AnySchema<Value>;
  /** Markdown: what holds if the variable is absent. */
  without: string;
  /** Markdown: what the variable means. `npm run config-docs` writes it into the guide and `.env.example`. */
  text: string;
  /** The value may stand in a file that `NAME_FILE` names, as Docker and the secret stores of clusters mount it. */
  isSecret: boolean;
}

type Raw = Record<string, string | undefined>;

const row = <Value>(name: string, readBy: string, rule: Joi.AnySchema<Value>, without: string) => ({
  means: (text: string): Setting<Value> => ({ name, readBy, rule, without, text, isSecret: false }),
  hides: (text: string): Setting<Value> => ({ name, readBy, rule, without, text, isSecret: true }),
});

const required = <Value>(name: string, readBy: string, rule: Joi.AnySchema<Value>) =>
  row<Value>(name, readBy, rule.required(), 'required');

const optional = <Value>(name: string, readBy: string, rule: Joi.AnySchema<Value>, without = 'none') =>
  row<Value | undefined>(name, readBy, rule, without);

/** `value` may depend on other variables, as they were given. */
const preset = <Value>(
  name: string,
  readBy: string,
  rule: Joi.AnySchema<Value>,
  value: Value | ((given: Raw) => Value),
  without = `\`${String(value)}\``,
) =>
  // joi declares only plain defaults; it copies lists and calls functions with the variables.
  row<Value>(name, readBy, rule.default(value as () => string), without);

/**
 * Every variable of the environment (docs/spec.md#settings), at its place in `Config`. A row that lacks a part does not
 * compile; after a change `npm run config-docs` writes the guide's table and `.env.example` again.
 */
export const settings = {
  redis: {
    url: required('REDIS_URL', 'both', redisUrl).hides(
      '`redis://`, `rediss://` (TLS), `redis+cluster://h1:p1,h2:p2` or `redis+sentinel://h1:p1,h2:p2/name`; user and password before an `@`. Redis 7.0 or newer, with `maxmemory-policy noeviction`',
    ),
    sentinelUsername: optional('REDIS_SENTINEL_USERNAME', 'both', withSentinel(Joi.string())).means(
      'User of the sentinels themselves',
    ),
    sentinelPassword: optional('REDIS_SENTINEL_PASSWORD', 'both', withSentinel(Joi.string())).hides(
      "Password of the sentinels themselves; the servers' own is in `REDIS_URL`",
    ),
    sentinelTls: optional('REDIS_SENTINEL_TLS', 'both', withSentinel(Joi.boolean()), 'as the servers').means(
      'Whether sentinels are reached over TLS, if they differ from the servers: `true` or `false`',
    ),
    tlsCaFile: optional('REDIS_TLS_CA_FILE', 'both', withRedisTls(Joi.string()), 'those that Node.js trusts').means(
      'Authority that signed the certificates of Redis and its sentinels (PEM), only with `rediss`',
    ),
    tlsCertFile: optional('REDIS_TLS_CERT_FILE', 'both', withRedisTls(Joi.string())).means(
      'Certificate that the service shows to Redis and its sentinels (PEM), if they ask for one (`tls-auth-clients yes`)',
    ),
    tlsKeyFile: optional('REDIS_TLS_KEY_FILE', 'both', withRedisTls(Joi.string())).means(
      'Private key (PEM) of that certificate; set both or neither. The files are read when a process starts',
    ),
  },
  mongodb: {
    uri: required('MONGODB_URI', 'both', mongoUri).hides(
      '`mongodb://` or `mongodb+srv://`, with the name of the database; a replica set, for transactions',
    ),
  },
  admin: {
    token: optional('ADMIN_TOKEN', 'ingress', strongToken, 'required, or `ADMIN_TOKENS`').hides(
      'Bearer token of the administration, named `admin`, which may change everything. At least 32 characters, 6 different ones: `openssl rand -hex 32`',
    ),
    tokens: preset('ADMIN_TOKENS', 'ingress', adminTokenList, [], 'none').hides(
      'Further [tokens](administration.md#tokens), `name:role:token` separated by commas; the role is `read` or `write`',
    ),
  },
  credentials: {
    key: required('CREDENTIALS_KEY', 'both', base64Key).hides(
      "32 bytes in base64 that encrypt providers' API keys and webhooks' secrets: `openssl rand -base64 32`. The same for all processes; see [its rotation](administration.md#rotate-the-credentials-key)",
    ),
    otherKeys: preset('CREDENTIALS_KEYS', 'both', base64Keys, [], 'none').hides(
      'Further keys, separated by commas, that can decrypt stored credentials: for a rotation',
    ),
  },
  process: {
    environment: preset('NODE_ENV', 'both', oneOf('development', 'production', 'test'), 'development').means(
      'With `production`, `REQUIRE_HTTPS` is true by default and the start scripts run what `npm run build` made. Other values: `development`, `test`',
    ),
    logLevel: preset('LOG_LEVEL', 'both', oneOf('error', 'warn', 'info', 'debug'), 'info').means(
      '`error`, `warn`, `info` or `debug`; log lines are JSON on standard output',
    ),
    keyPrefix: preset('KEY_PREFIX', 'ingress', keyPrefix, 'svc').means(
      'First part of the API keys; keys with another prefix are refused. A lower-case letter, then 1 to 15 letters or digits',
    ),
    revision: preset('REVISION', 'both', Joi.string().max(64), 'unknown').means(
      'The commit of this build, for logs, metrics and `/health/live`; the image sets it',
    ),
    allowTestSettings: preset('ALLOW_TEST_SETTINGS', 'both', Joi.boolean(), false).means(
      'Lets `WEBHOOK_ALLOW_PRIVATE=true` and `PAYMENTS=test` apply with `NODE_ENV=production`: for experiments that serve nobody',
    ),
  },
  http: {
    host: preset('HOST', 'both', Joi.string(), '127.0.0.1').means(
      'The address that a process listens on, for all ports except `ADMIN_PORT`; `0.0.0.0` in a container',
    ),
    port: preset('PORT', 'ingress', port, 8080).means('`/platform/v1`, `/docs/`, `/health/live`, `/health/ready`'),
    adminHost: preset('ADMIN_HOST', 'ingress', Joi.string(), '127.0.0.1').means(
      'The address that `ADMIN_PORT` listens on',
    ),
    adminPort: preset('ADMIN_PORT', 'ingress', port, 8081).means(
      '`/admin/v1`, `/admin/queues`, `/metrics`, `/health/deep`',
    ),
    metricsPort: preset('METRICS_PORT', 'ingress', port, 0).means(
      '`/metrics` and health alone, for a Prometheus that is not to reach the administration; 0: none',
    ),
    workerPort: preset('WORKER_PORT', 'worker', port, 0).means(
      '`/health/live`, `/health/ready` and `/metrics`; 0 turns it off. `npm start` uses 8082, and the following ports for further workers',
    ),
    maxConnections: preset('MAX_CONNECTIONS', 'ingress', integer(1, 1_000_000), 20_000).means(
      'Connections open on `PORT` at a time; the process needs as many file descriptors (`ulimit -n`)',
    ),
    keepAliveSeconds: preset('KEEP_ALIVE_SECONDS', 'ingress', integer(1, 3_600), 620).means(
      'How long an idle connection is kept: longer than [the load balancer](proxies.md) keeps it, else callers see scattered 502s',
    ),
    drainSeconds: preset(
      'DRAIN_SECONDS',
      'ingress',
      integer(0, 3_600),
      ({ NODE_ENV }) => (NODE_ENV === 'production' ? 5 : 0),
      '5 with `NODE_ENV=production`, else 0',
    ).means(
      'How long a stopping ingress still accepts connections, not ready, before `SHUTDOWN_GRACE_SECONDS` begins: longer than [a proxy](proxies.md) takes to notice',
    ),
    requireHttps: preset(
      'REQUIRE_HTTPS',
      'ingress',
      Joi.boolean(),
      ({ NODE_ENV }) => NODE_ENV === 'production',
      'true with `NODE_ENV=production`, else false',
    ).means(
      'Refuses requests on `PORT` and `ADMIN_PORT` that are neither HTTPS nor from this machine, except `/health`; see [HTTPS](#https)',
    ),
    trustProxy: preset('TRUST_PROXY', 'ingress', listOf(isProxy, 'proxy.address'), [], 'none').means(
      'Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted: addresses, networks (`10.0.0.0/8`) or the names `loopback`, `linklocal`, `uniquelocal`, separated by commas',
    ),
    corsOrigins: preset('CORS_ORIGINS', 'ingress', listOf(isOrigin, 'origin.form'), [], 'none').means(
      'Origins whose pages may call `/platform/v1` from a browser, separated by commas',
    ),
  },
  tls: {
    certFile: optional('TLS_CERT_FILE', 'ingress', Joi.string()).means(
      'Certificate chain (PEM); with it, both ports of the ingress serve HTTPS themselves',
    ),
    keyFile: optional('TLS_KEY_FILE', 'ingress', Joi.string()).means(
      'Private key (PEM) of that certificate; set both or neither',
    ),
  },
  metrics: {
    isPublic: preset('METRICS_PUBLIC', 'both', Joi.boolean(), false).means(
      'Opens `/metrics` and `/health/deep` to everybody, not only to this machine and tokens',
    ),
    token: optional('METRICS_TOKEN', 'both', strongToken).hides(
      'A token for `/metrics` and `/health/deep` only, accepted over plain HTTP too',
    ),
  },
  worker: {
    concurrency: preset('WORKER_CONCURRENCY', 'both', integer(1, 100_000), 512).means(
      'Requests that one worker runs at once, divided among the shards',
    ),
    batchConcurrency: preset('WORKER_BATCH_CONCURRENCY', 'worker', integer(1, 100_000), 64).means(
      'Lines of batches that one worker runs in addition; fewer while its event loop is busy',
    ),
  },
  queue: {
    shards: preset('QUEUE_SHARDS', 'both', integer(1, 1_024), 1).means(
      '[Shards](operating.md#shards) that new tenants are spread over',
    ),
    maxWaiting: preset('QUEUE_MAX_WAITING', 'both', integer(1, 10_000_000), 10_000).means(
      "Requests that may wait in one shard's queue; beyond that the answer is 503 with `Retry-After`",
    ),
    completedKept: preset('COMPLETED_JOBS_KEPT', 'worker', integer(0, 10_000), 200).means(
      'Completed requests that [Bull Board](operating.md#bull-board) shows for each queue; 0 keeps none',
    ),
  },
  limits: {
    requestTimeoutSeconds: preset('REQUEST_TIMEOUT_SECONDS', 'both', integer(1, 3_600), 600).means(
      'Time limit of a request from acceptance to its end, 1 to 3,600. Stopping a worker may take as long',
    ),
    requestLogDays: preset('REQUEST_LOG_DAYS', 'both', integer(0, 400), 30).means(
      'How long the administration can find a request, without its text; 0 keeps none',
    ),
    streamRetentionSeconds: preset('STREAM_RETENTION_SECONDS', 'both', integer(1, 86_400), 900).means(
      'How long an answer stays in Redis after its end, 1 to 86,400',
    ),
    disconnectGraceSeconds: preset('DISCONNECT_GRACE_SECONDS', 'worker', integer(0, 3_600), 30).means(
      'How long a request without a reader waits for one before it is cancelled, 0 to 3,600, unless its tenant has `on_disconnect: finish`',
    ),
    shutdownGraceSeconds: preset('SHUTDOWN_GRACE_SECONDS', 'ingress', integer(1, 3_600), 30).means(
      'How long a stopping ingress waits for its open answers before it cuts them; `REQUEST_TIMEOUT_SECONDS` cuts none',
    ),
  },
  moderation: {
    backend: preset('MODERATION_BACKEND', 'worker', oneOf('local', 'openai'), 'local').means(
      'Who [moderates](#moderation): `local` (word lists of this service) or `openai` (`POST {MODERATION_BASE_URL}/moderations`)',
    ),
    baseUrl: optional(
      'MODERATION_BASE_URL',
      'worker',
      baseUrl.when('MODERATION_BACKEND', { is: 'openai', then: neededWith('MODERATION_BACKEND=openai') }),
      'required with `openai`',
    ).means('For example `https://api.openai.com/v1`'),
    apiKey: optional('MODERATION_API_KEY', 'worker', headerValue).hides('Sent to that endpoint as a bearer token'),
    model: optional('MODERATION_MODEL', 'worker', Joi.string().max(256), "the endpoint's own").means(
      'For example `omni-moderation-latest`',
    ),
    timeoutMs: preset('MODERATION_TIMEOUT_MS', 'worker', integer(100, 60_000), 5_000).means(
      'How long a verdict may take, including a second try, 100 to 60,000',
    ),
  },
  webhooks: {
    allowPrivate: preset('WEBHOOK_ALLOW_PRIVATE', 'ingress, worker', Joi.boolean(), false).means(
      'Allows webhooks to private addresses and over plain http: tenants can then reach your network. Not with `NODE_ENV=production`',
    ),
  },
  providers: {
    allowHttp: preset('PROVIDER_ALLOW_HTTP', 'ingress', Joi.boolean(), false).means(
      'Allows providers with plain http on public hosts, not only in your own network',
    ),
    requireCost: preset('REQUIRE_TARGET_COST', 'ingress', Joi.boolean(), false).means(
      'Refuses tiers whose targets have no `cost`',
    ),
  },
  payments: {
    kind: preset(
      'PAYMENTS',
      'ingress',
      oneOf('stripe', 'test', 'none'),
      ({ STRIPE_SECRET_KEY: key }) => (key === undefined ? 'none' : 'stripe'),
      '`stripe` with a key, else `none`',
    ).means(
      'Who takes the payments: `stripe` (Stripe Checkout), `test` (a page that takes none; not with `NODE_ENV=production`) or `none` (a checkout is 409). `npm start` sets `test` without a Stripe key',
    ),
    stripeSecretKey: optional(
      'STRIPE_SECRET_KEY',
      'ingress',
      Joi.string().when('PAYMENTS', { is: 'stripe', then: neededWith('PAYMENTS=stripe') }),
    ).hides('Opens checkouts with Stripe'),
    stripeWebhookSecret: optional('STRIPE_WEBHOOK_SECRET', 'ingress', Joi.string()).hides(
      "Required with `STRIPE_SECRET_KEY`: verifies Stripe's callbacks to `/platform/v1/billing/stripe/webhook`",
    ),
  },
  tracing: {
    endpoint: optional('OTEL_EXPORTER_OTLP_ENDPOINT', 'both', baseUrl).means(
      'Switches on [tracing](tracing.md): base URL of a collector that takes spans by OTLP over HTTP with JSON, such as `http://127.0.0.1:4318`',
    ),
    serviceName: optional('OTEL_SERVICE_NAME', 'both', Joi.string().max(256), '`parley-api`, `parley-worker`').means(
      "The service's name in traces",
    ),
    sampler: preset('OTEL_TRACES_SAMPLER', 'both', sampler, 'parentbased_always_on').means(
      'Which traces are kept: `always_on`, `always_off` or `traceidratio`, each also after `parentbased_`',
    ),
    samplerArg: preset('OTEL_TRACES_SAMPLER_ARG', 'both', Joi.number().min(0).max(1), 1).means(
      'The share of traces that `traceidratio` keeps, 0 to 1',
    ),
  },
} satisfies Record<string, Record<string, Setting>>;

type ValueOf<Row> = Row extends Setting<infer Value> ? Value : never;
type OptionalOf<Group> = { [Key in keyof Group]: undefined extends ValueOf<Group[Key]> ? Key : never }[keyof Group];
type ValuesOf<Group> = { [Key in Exclude<keyof Group, OptionalOf<Group>>]: ValueOf<Group[Key]> } & {
  [Key in OptionalOf<Group>]?: Exclude<ValueOf<Group[Key]>, undefined>;
};

/** Times end in their unit. */
export type Config = { [Group in keyof typeof settings]: ValuesOf<(typeof settings)[Group]> };

export const settingsList: readonly Setting[] = Object.values<Record<string, Setting>>(settings).flatMap((group) =>
  Object.values(group),
);

export const settingsSchema = Joi.object<Record<string, unknown>>(
  Object.fromEntries(settingsList.map(({ name, rule }) => [name, rule])),
)
  .and('TLS_CERT_FILE', 'TLS_KEY_FILE')
  .and('REDIS_TLS_CERT_FILE', 'REDIS_TLS_KEY_FILE')
  .and('STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET')
  .messages({ ...RULE_MESSAGES, ...SECRET_MESSAGES });
