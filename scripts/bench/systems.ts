import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { freePort } from '../embedded/ports.ts';
import type { Log } from '../embedded/run-step.ts';
import { connectRedis, createRedis } from '../../shared/redis/connection.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import { createOutbox } from '../../shared/requests/outbox.ts';
import { superviseProgram } from '../harness/program.ts';
import type { AdminApi } from '../harness/admin-api.ts';
import { openTenant } from '../harness/open-tenant.ts';
import { startProcesses } from '../harness/start-processes.ts';
import type { ProcessesOptions } from '../harness/start-processes.ts';
import { superviseMongo, superviseRedis } from '../harness/stores.ts';
import type { MongoInUse } from '../harness/stores.ts';
import { assertReady } from '../harness/http.ts';
import type { Supervisor } from '../harness/supervisor.ts';
import type { SystemName } from './cases.ts';

/** Parley or the floor, as the benchmark runs it. */
export interface System {
  name: SystemName;
  /** Base URL, `/platform/v1` included. */
  url: string;
  headers: Record<string, string>;
  /** Its processes by name: ingress, worker, Redis, MongoDB. */
  pids: Record<string, number>;
  redis: RedisClient;
  /** Resolves when all work for answered requests is done. */
  settled(): Promise<void>;
}

export interface Parley extends System {
  tenantId: string;
  key: string;
  admin: AdminApi;
  mongo: MongoInUse;
}

export interface SystemOptions {
  supervisor: Supervisor;
  dataDir: string;
  providerUrl: string;
  /** Default: forty chunks, sent as fast as the provider can. */
  providerModel?: string;
  /** Requests that a worker runs at once; undefined: the default of 512. */
  concurrency?: number | undefined;
  log: Log;
}

const PROVIDER_MODEL = 'sim?chunks=40';
const JSON_BODY = { 'Content-Type': 'application/json' };
/** There is one shard by default, so every tenant is on it. */
const SHARD = 0;
const SETTLE_POLL_MS = 20;
const SETTLE_TIMEOUT_MS = 60_000;

async function openClient(supervisor: Supervisor, url: string): Promise<RedisClient> {
  const client = createRedis(url, 'worker');
  await connectRedis(client);
  supervisor.defer('a connection to Redis', () => {
    client.disconnect();
    return Promise.resolve();
  });
  return client;
}

export async function startParley(
  options: SystemOptions,
  nodeArgs: ProcessesOptions['nodeArgs'] = {},
  { folder = 'parley', workers: count = 1 } = {},
): Promise<Parley> {
  const { supervisor, providerUrl, concurrency, log } = options;
  const dataDir = join(options.dataDir, folder);
  await mkdir(dataDir);
  const redis = await superviseRedis({ supervisor, dataDir, log });
  const mongo = await superviseMongo({ supervisor, dataDir, log });
  const provider = { url: providerUrl, model: options.providerModel ?? PROVIDER_MODEL };
  const urls = { redisUrl: redis.url, mongodbUri: mongo.uri };
  const size = { nodeArgs, concurrency, workers: count };
  const service = await startProcesses({ supervisor, dataDir, ...urls, provider, ...size, isBuilt: true });
  const { tenantId, key } = await openTenant(service.admin, 'Benchmark');
  const client = await openClient(supervisor, redis.url);
  const outbox = createOutbox(client, createKeyspace());
  const { ingress, workers } = service.pids;
  return {
    name: 'parley',
    url: service.url,
    headers: { ...JSON_BODY, Authorization: `Bearer ${key}` },
    pids: {
      ingress,
      ...Object.fromEntries(workers.map((pid, index) => [index === 0 ? 'worker' : `worker ${index + 1}`, pid])),
      Redis: redis.pid,
      ...(mongo.pid === undefined ? {} : { MongoDB: mongo.pid }),
    },
    redis: client,
    settled: () => untilSettled(() => outbox.length(SHARD), supervisor.signal),
    tenantId,
    key,
    admin: service.admin,
    mongo,
  };
}

async function untilSettled(outboxLength: () => Promise<number>, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + SETTLE_TIMEOUT_MS;
  while ((await outboxLength()) > 0) {
    if (performance.now() > deadline) {
      throw new Error(`The ledger is more than ${SETTLE_TIMEOUT_MS / 1000} s behind the answers.`);
    }
    await pause(SETTLE_POLL_MS, undefined, { signal });
  }
}

export async function startFloor({ supervisor, providerUrl, log, ...options }: SystemOptions): Promise<System> {
  const dataDir = join(options.dataDir, 'floor');
  await mkdir(dataDir);
  const redis = await superviseRedis({ supervisor, dataDir, log });
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const env = { NODE_ENV: 'production', REDIS_URL: redis.url };
  const { concurrency } = options;
  const limit: Record<string, string> = concurrency === undefined ? {} : { WORKER_CONCURRENCY: String(concurrency) };
  const ingress = await superviseProgram(supervisor, {
    name: "The floor's ingress",
    file: 'scripts/bench/floor-api.ts',
    env: { ...env, PORT: String(port) },
    log: { file: join(dataDir, 'api.log') },
    ready: () => assertReady(`${origin}/health/ready`),
  });
  const worker = await superviseProgram(supervisor, {
    name: "The floor's worker",
    file: 'scripts/bench/floor-worker.ts',
    env: { ...env, PROVIDER_URL: providerUrl, PROVIDER_MODEL, ...limit },
    log: { file: join(dataDir, 'worker.log') },
    // The worker has no port; the first request of the warm-up waits for it.
    ready: () => Promise.resolve(),
  });
  return {
    name: 'floor',
    url: `${origin}/platform/v1`,
    headers: JSON_BODY,
    pids: { ingress, worker, Redis: redis.pid },
    redis: await openClient(supervisor, redis.url),
    settled: () => Promise.resolve(),
  };
}
