import type { Server } from 'node:http';

import type { Express } from 'express';
import request from 'supertest';

import { createAdminApp } from '../../api/admin-app.ts';
import type { AdminDeps } from '../../api/admin-app.ts';
import { ADMIN_FAILURES_PER_MINUTE } from '../../api/admin/access/authenticate-admin.ts';
import { openMoveTenant } from '../../api/admin/tenants/move-tenant.ts';
import { createWriteAuditLog } from '../../api/resources/audit-log-endpoints.ts';
import { createTenantEvents } from '../../api/contract/tenant-events.ts';
import { createAccountRepository } from '../../shared/mongo/accounts/account-repository.ts';
import { createRequestLog } from '../../shared/mongo/requests/request-log.ts';
import { createAdminAuditRepository } from '../../shared/mongo/administration/admin-audit-repository.ts';
import { createCredentialRotation } from '../../shared/mongo/administration/rotate-credentials.ts';
import { createAdminAccessStore } from '../../shared/redis/stores/admin-access-store.ts';
import { createAuditRepository } from '../../shared/mongo/tenants/audit-repository.ts';
import type { MongoConnection } from '../../shared/mongo/connection.ts';
import { createCredentialCipher } from '../../shared/mongo/credentials.ts';
import { createKeyRepository } from '../../shared/mongo/tenants/key-repository.ts';
import { createModels, ensureIndexes } from '../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../shared/mongo/administration/catalogue.ts';
import { createReaderPlaces } from '../../api/relay/reader-places.ts';
import { createPseudonyms } from '../../shared/domain/pseudonyms.ts';
import { createComplianceJobRepository } from '../../shared/mongo/compliance/compliance-job-repository.ts';
import { createExportArchiveRepository } from '../../shared/mongo/compliance/export-archive-repository.ts';
import { createLedgerRepository } from '../../shared/mongo/accounts/ledger-repository.ts';
import { createUsageRepository } from '../../shared/mongo/accounts/usage-repository.ts';
import { createPriceRepository } from '../../shared/mongo/accounts/price-repository.ts';
import { createProviderRepository } from '../../shared/mongo/routing/provider-repository.ts';
import { createIdempotencyRepository } from '../../shared/mongo/requests/idempotency-repository.ts';
import { createTenantRepository, createShardDirectory } from '../../shared/mongo/tenants/tenant-repository.ts';
import { createPublishedModels, createTierRepository } from '../../shared/mongo/routing/tier-repository.ts';
import { createChatQueues, openQueue } from '../../shared/queue/queues.ts';
import type { ChatQueues, JobQueue } from '../../shared/queue/queues.ts';
import { createAccessFlags } from '../../shared/redis/stores/access-flags.ts';
import { createCapacityStore } from '../../shared/redis/stores/capacity-store.ts';
import { createBreakerStore } from '../../shared/redis/stores/breaker-store.ts';
import { createLastDrift, createAccountStore } from '../../shared/redis/stores/account-store.ts';
import { createOutbox } from '../../shared/requests/outbox.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import { createProcessRegistry } from '../../shared/redis/stores/process-registry.ts';
import { createProviderTests } from '../../shared/redis/stores/provider-tests.ts';
import { createQueueHistory } from '../../shared/redis/stores/queue-history.ts';
import { createQueueStatistics } from '../../shared/requests/queue-store.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { listen } from './listen.ts';
import { openTestMongo, openTestRedis, uniqueName } from './stores.ts';

export const ADMIN_TOKEN = 'an-administrator-token-of-tests-0123456789';
export const CREDENTIALS_KEY = Buffer.alloc(32, 7);

/** A clock that stands until a test moves it. */
interface TestClock {
  now(): number;
  advance(ms: number): void;
}

export interface TestAdmin {
  app: Server;
  url: string;
  /** What `app` serves. */
  express: Express;
  /** Sends a request with the administrator's token. */
  call(method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<request.Response>;
  mongo: MongoConnection;
  models: Models;
  redis: RedisClient;
  keyspace: Keyspace;
  queues: ChatQueues;
  compliance: JobQueue<'compliance'>;
  clock: TestClock;
  /** A connection that listens; closed with the rest. */
  subscribe(): Promise<RedisClient>;
  /** Everything that was logged as an error: a test of bad input expects none. */
  errors: string[];
  close(): Promise<void>;
}

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

function createTestClock(): TestClock {
  let time = Date.now();
  return {
    now: () => time,
    advance(ms) {
      time += ms;
    },
  };
}

function createErrorLog(): { log: Logger; errors: string[] } {
  const errors: string[] = [];
  const quiet = () => undefined;
  const error: Logger['error'] = (message, fields) => {
    const cause = fields?.error;
    errors.push(cause instanceof Error ? `${message} ${cause.stack ?? cause.message}` : message);
  };
  return { log: { error, warn: quiet, info: quiet, debug: quiet, watchStore: () => quiet }, errors };
}

/**
 * The administration app over real stores, with a database and a Redis namespace of its own. Two shards, so that
 * nothing works by chance on shard 0 alone.
 */
export async function startAdmin(overrides: Partial<AdminDeps> = {}): Promise<TestAdmin> {
  const name = uniqueName('admin-');
  const mongo = await openTestMongo(name);
  const redis = await openTestRedis('producer');
  const models = createModels(mongo);
  await ensureIndexes(mongo);
  const keyspace = createKeyspace(name);
  const queues = createChatQueues(redis, keyspace, () => undefined);
  const compliance = openQueue('compliance', { client: redis, prefix: keyspace.compliance, onError: () => undefined });
  const subscribers: RedisClient[] = [];
  const clock = createTestClock();
  const { log, errors } = createErrorLog();
  const stores = {
    tenants: createTenantRepository(mongo),
    keys: createKeyRepository(mongo),
    accounts: createAccountRepository(mongo),
    accountStore: createAccountStore(redis, keyspace),
    accessFlags: createAccessFlags(redis, keyspace),
  };
  const app = createAdminApp({
    ...stores,
    moveTenant: openMoveTenant({ mongo, redis, keyspace }, { ...stores, clock, log }),
    http: { trustProxy: [], requireHttps: false },
    publishedModels: createPublishedModels(mongo),
    adminTokens: [{ name: 'admin', role: 'write', token: ADMIN_TOKEN }],
    adminAccess: createAdminAccessStore(redis, keyspace, { failuresPerMinute: ADMIN_FAILURES_PER_MINUTE }),
    adminAudit: createAdminAuditRepository(mongo),
    requestLog: createRequestLog(mongo),
    credentials: createCredentialRotation(mongo, createCredentialCipher(CREDENTIALS_KEY)),
    metricsAccess: { isPublic: false },
    providerRules: { allowHttp: false },
    refusals: { note: () => undefined },
    keyPrefix: 'svc',
    idempotency: createIdempotencyRepository(mongo),
    // Replays need workers: test/api/admin/admin-replay.test.ts.
    processes: createProcessRegistry(redis, keyspace),
    replayFailed: () => Promise.resolve({ matched: 0, requests: [], next: undefined }),
    isTargetCostRequired: false,
    compliance: {
      jobs: createComplianceJobRepository(mongo),
      archives: createExportArchiveRepository(mongo),
      queue: { add: (job) => compliance.add(job.jobId, job), close: () => compliance.close() },
      pseudonyms: createPseudonyms(Buffer.alloc(32)),
    },
    readerPlaces: createReaderPlaces(),
    relayTimes: {},
    usage: createUsageRepository(mongo),
    ledger: createLedgerRepository(mongo),
    prices: createPriceRepository(mongo, { currency: 'usd', pricePerMillion: null, packages: [] }),
    providers: createProviderRepository(mongo, createCredentialCipher(CREDENTIALS_KEY)),
    tiers: createTierRepository(mongo),
    breakers: createBreakerStore(redis, keyspace, { emit: () => undefined }),
    capacities: createCapacityStore(redis, keyspace),
    providerTests: createProviderTests(redis, keyspace),
    events: createTenantEvents([createWriteAuditLog({ audit: createAuditRepository(mongo), clock, log })], log),
    queueStatistics: createQueueStatistics(redis, keyspace),
    shardDirectory: createShardDirectory(mongo, 2),
    outbox: createOutbox(redis, keyspace),
    lastDrift: createLastDrift(redis, keyspace),
    workerConcurrency: 10,
    queues: () => Promise.resolve([queues.queue(0, 'interactive'), queues.queue(1, 'interactive')]),
    backgroundQueues: [compliance.queue],
    queueHistory: createQueueHistory(redis),
    metrics: { contentType: 'text/plain; version=0.0.4', render: () => Promise.resolve('up 1\n') },
    deepHealth: () => Promise.resolve({ status: 'ok' }),
    clock,
    log,
    ...overrides,
  });
  const { server, url, close } = await listen(app);
  return {
    app: server,
    url,
    express: app,
    mongo,
    models,
    redis,
    keyspace,
    queues,
    compliance,
    clock,
    errors,
    call(method, path, body, headers = {}) {
      const call = request(server)[method](path).auth(ADMIN_TOKEN, { type: 'bearer' }).set(headers);
      return Promise.resolve(body === undefined ? call : call.send(body as object));
    },
    async subscribe() {
      const subscriber = await openTestRedis('subscriber');
      subscribers.push(subscriber);
      return subscriber;
    },
    async close() {
      await close();
      await Promise.all(subscribers.map((subscriber) => subscriber.quit()));
      await queues.close();
      await compliance.close();
      await mongo.close();
      await redis.quit();
    },
  };
}

/** What every refusal must look like (docs/spec.md#error-object). */
export function errorOf(response: request.Response): Record<string, unknown> {
  const body = response.body as { error: Record<string, unknown> | string };
  // The board's page shows an error that is a sentence only.
  const error = typeof body.error === 'string' ? { ...body, message: body.error } : body.error;
  if (Reflect.get(error, 'request_id') !== response.headers['x-request-id'])
    throw new Error('request_id differs from X-Request-Id');
  return error;
}
