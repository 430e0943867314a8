import type { Server } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

import type { Express } from 'express';
import request from 'supertest';

import { composeIngress } from '../../api/compose.ts';
import type { RelayTimes } from '../../api/relay/answer.ts';
import { ROUTED_TIERS } from '../../shared/contracts/chat-request.ts';
import type { RoutedTier } from '../../shared/contracts/chat-request.ts';
import { loadConfig } from '../../shared/config/load-config.ts';
import type { Config } from '../../shared/config/settings.ts';
import { connectMongo } from '../../shared/mongo/connection.ts';
import type { MongoConnection } from '../../shared/mongo/connection.ts';
import { createModels } from '../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../shared/mongo/administration/catalogue.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import { createCloser } from '../../shared/lifecycle/closer.ts';
import { composeWorker } from '../../workers/compose.ts';
import { createSimulatedProvider } from '../../scripts/simulated-provider/simulated-provider.ts';
import type { SimulatedProvider } from '../../scripts/simulated-provider/simulated-provider.ts';
import { listen } from './listen.ts';
import { waitFor, waitUntil } from './wait-for.ts';
import { createRecordingLog } from './recording-log.ts';
import type { RecordingLog } from './recording-log.ts';
import { mongoUri, openTestRedis, redisUrl, uniqueName } from './stores.ts';

const ADMIN_TOKEN = 'an-administrator-token-of-tests-0123456789';

/** Fields of `POST /admin/v1/tenants` and of its key. */
export interface TenantOptions {
  credits?: number;
  tenant?: Record<string, unknown>;
  key?: Record<string, unknown>;
}

export interface TestTenant {
  tenantId: string;
  keyId: string;
  /** The API key's value. */
  key: string;
}

export interface RunningWorker {
  /** The worker's metrics page. */
  metrics(): Promise<string>;
  close(): Promise<void>;
}

/** An ingress and, unless told otherwise, a worker in this process, over real stores with names of their own. */
export interface TestService {
  app: Server;
  adminApp: Server;
  /** What `app` serves. */
  express: Express;
  /** The address of `app` behind a real socket, for what supertest cannot read: streams as they come. */
  url: string;
  provider: SimulatedProvider;
  mongo: MongoConnection;
  models: Models;
  redis: RedisClient;
  keyspace: Keyspace;
  log: RecordingLog;
  startTenant(options?: TenantOptions): Promise<TestTenant>;
  admin(
    method: 'get' | 'post' | 'put' | 'patch' | 'delete',
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<request.Response>;
  /** Sets a provider, `simulated` unless named; a worker that is started after this has it at once. */
  setProvider(settings: object, name?: string): Promise<void>;
  setTargets(tier: RoutedTier, targets: object[]): Promise<void>;
  /** Waits until the ingress has read all routes that were set before, which takes it half a second. */
  routesKnown(): Promise<void>;
  /** The ingress's metrics page. */
  metrics(): Promise<string>;
  /** `own`: settings in which it differs, as while an installation is changed. */
  startWorker(own?: Record<string, string>): Promise<RunningWorker>;
  /** Closes every circuit breaker, in every worker. */
  resetBreakers(): Promise<void>;
  close(): Promise<void>;
}

function configOf(database: string, env: Record<string, string>): Readonly<Config> {
  return loadConfig(
    {
      REDIS_URL: redisUrl(),
      MONGODB_URI: mongoUri(database),
      ADMIN_TOKEN,
      CREDENTIALS_KEY: Buffer.alloc(32, 7).toString('base64'),
      ...env,
    },
    'api',
  );
}

/** A breaker that opens for a refusal only: a test that makes a provider fail often means something else. */
const RELUCTANT = { min_attempts: 1_000_000 };

export interface ServiceOptions {
  /** Settings of docs/spec.md#settings. */
  env?: Record<string, string>;
  /** Number of workers at the start. */
  workers?: number;
  relayTimes?: RelayTimes;
  silenceMs?: number;
  /** Where Stripe's API is. */
  stripeApiUrl?: string;
  /** Of the keys in Redis, and the database; by default a new one. `isSetUp`: another service has set its providers and tiers. */
  namespace?: string;
  isSetUp?: boolean;
}

const SET_UP_TRIES = 5;

export async function startService(options: ServiceOptions = {}): Promise<TestService> {
  const { env = {}, workers = 1, relayTimes = {}, silenceMs, stripeApiUrl } = options;
  const name = options.namespace ?? uniqueName('t');
  const config = configOf(name, env);
  const log = createRecordingLog();
  const closer = createCloser((step, error) => {
    log.error(`Closing ${step} failed.`, { error });
  });

  const provider = createSimulatedProvider();
  const { url: providerUrl } = await provider.listen();
  closer.defer('provider', () => provider.close());
  const mongo = await connectMongo(config.mongodb.uri);
  closer.defer('database', () => mongo.close());
  const redis = await openTestRedis('producer', config.redis.url);
  closer.defer('redis', () => redis.quit());

  const ingress = await composeIngress(config, log, closer, {
    namespace: name,
    relayTimes,
    ...(stripeApiUrl === undefined ? {} : { stripeApiUrl }),
  });
  const [listening, adminListening] = await Promise.all([listen(ingress.app), listen(ingress.adminApp)]);
  closer.defer('server', () => Promise.all([listening.close(), adminListening.close()]));
  const { server: adminApp } = adminListening;

  const admin: TestService['admin'] = (method, path, body, headers = {}) => {
    const call = request(adminApp)[method](`/admin/v1${path}`).auth(ADMIN_TOKEN, { type: 'bearer' }).set(headers);
    return Promise.resolve(body === undefined ? call : call.send(body));
  };
  /** What a test needs before it begins: a store that is slow on a busy machine is asked again. */
  const setUp: TestService['admin'] = async (method, path, body) => {
    for (let tries = 0; ; tries += 1) {
      const answer = await admin(method, path, body);
      if (answer.status !== 503 || tries === SET_UP_TRIES) return answer;
      await pause(500);
    }
  };
  async function setProvider(settings: object, name = 'simulated'): Promise<void> {
    const provider = { kind: 'simulated', base_url: `${providerUrl}/v1`, breaker: RELUCTANT, ...settings };
    const { status, text } = await setUp('put', `/providers/${name}`, provider);
    if (status !== 200 && status !== 201) throw new Error(`The provider was refused: ${text}`);
  }
  async function setTargets(tier: RoutedTier, targets: object[]): Promise<void> {
    const rate = tier === 'oloid' ? 4 : 1;
    const { status, text } = await setUp('put', `/tiers/${tier}`, {
      rates: { prompt: rate, completion: tier === 'embedding' ? 0 : rate },
      targets,
    });
    if (status !== 200 && status !== 201) throw new Error(`The tier was refused: ${text}`);
  }
  const startTenant: TestService['startTenant'] = async ({ credits = 1_000_000, tenant = {}, key = {} } = {}) => {
    const made = await setUp('post', '/tenants', {
      name: 'test',
      rpm: 100_000,
      tpm: 100_000_000,
      chat_rpm: 100_000,
      stream_rpm: 100_000,
      ...(credits === 0 ? {} : { credits }),
      ...tenant,
    });
    if (made.status !== 201)
      throw new Error(`The tenant was refused: ${made.text} ${log.errors().slice(-3).join(' ')}`);
    const madeKey = await setUp('post', `/tenants/${String(made.body.id)}/keys`, { name: 'test', ...key });
    if (madeKey.status !== 201)
      throw new Error(`The key was refused: ${madeKey.text} ${log.errors().slice(-3).join(' ')}`);
    return { tenantId: String(made.body.id), keyId: String(madeKey.body.id), key: String(madeKey.body.value) };
  };
  async function routesKnown(): Promise<void> {
    // A name that is published last is listed last.
    const marker = `known-${Date.now()}`;
    await setUp('put', `/models/${marker}`, { tier: 'mobius' });
    const { key } = await startTenant();
    const list = () => request(listening.server).get('/platform/v1/models').auth(key, { type: 'bearer' });
    await waitUntil(async () => (await list()).text.includes(marker), 'the routes');
    await setUp('delete', `/models/${marker}`);
  }
  if (options.isSetUp !== true) await setProvider({});
  const target = { provider: 'simulated', model: 'sim' };
  if (options.isSetUp !== true) for (const tier of ROUTED_TIERS) await setTargets(tier, [target]);

  const running = new Set<RunningWorker>();
  async function startWorker(own: Record<string, string> = {}): Promise<RunningWorker> {
    const workerCloser = createCloser((step, error) => {
      log.error(`Closing ${step} failed.`, { error });
    });
    const { metrics } = await composeWorker(configOf(name, { ...env, ...own }), log, workerCloser, {
      namespace: name,
      ...(silenceMs === undefined ? {} : { silenceMs }),
    });
    closer.defer('worker', () => workerCloser.close(), { limitMs: Infinity });
    const worker: RunningWorker = {
      metrics: () => metrics.render(),
      close() {
        running.delete(worker);
        return workerCloser.close();
      },
    };
    running.add(worker);
    return worker;
  }

  async function resetBreakers(): Promise<void> {
    const { body } = await admin('get', '/breakers?limit=100');
    // Those that only count failures are made to forget them, or the next test's would add to them.
    for (const { id, recent_failures: failures } of body.data as { id: string; recent_failures: number }[])
      if (failures > 0) await admin('post', `/breakers/${id}/reset`);
    async function isClosed(worker: RunningWorker): Promise<true | undefined> {
      const open = [...(await worker.metrics()).matchAll(/^parley_breaker_state\{.*provider="(.*?)".*\} [12]$/gm)];
      for (const [, name = ''] of open) {
        const { status, text } = await admin('post', `/breakers/${name}/reset`);
        if (status !== 200) throw new Error(`The reset was refused: ${text}`);
      }
      return open.length === 0 ? true : undefined;
    }
    for (const worker of running)
      await waitFor(() => isClosed(worker), 'the worker to hear that its breakers are closed');
  }
  for (let count = 0; count < workers; count += 1) await startWorker();

  return {
    app: listening.server,
    adminApp,
    express: ingress.app,
    url: listening.url,
    provider,
    mongo,
    models: createModels(mongo),
    redis,
    keyspace: createKeyspace(name),
    log,
    admin,
    setProvider,
    setTargets,
    metrics: async () => (await request(adminApp).get('/metrics').auth(ADMIN_TOKEN, { type: 'bearer' })).text,
    startWorker,
    resetBreakers,
    startTenant,
    routesKnown,
    async close() {
      await closer.close();
    },
  };
}
