import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

import { connectRedis, createRedis } from '../../shared/redis/connection.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import { createOutbox } from '../../shared/requests/outbox.ts';
import { freePort } from '../embedded/ports.ts';
import type { Log } from '../embedded/run-step.ts';
import { assertReady, callJson } from '../harness/http.ts';
import { openTenant } from '../harness/open-tenant.ts';
import { ROOT, superviseProgram } from '../harness/program.ts';
import { startProcesses } from '../harness/start-processes.ts';
import type { ProcessesOptions } from '../harness/start-processes.ts';
import { superviseMongo, superviseRedis } from '../harness/stores.ts';
import type { Supervisor } from '../harness/supervisor.ts';
import { SENTENCE, historyOf, promptOf } from './bench-cases.ts';
import type { BenchCase } from './bench-cases.ts';
import type { LoadSpec } from './load.ts';

/** The calls of a contender in one case. */
type Ask = Pick<LoadSpec, 'url' | 'headers' | 'bodies'> & {
  /** How many requests were answered to prepare the load. */
  prepared?: number;
};

/** One of the systems that are compared. */
export interface Contender {
  name: string;
  /** Its processes by name (ingress, worker, Redis, MongoDB). */
  pids: Record<string, number>;
  prepare(benchCase: BenchCase): Promise<Ask>;
  /** Resolves when no work for answered requests is left. */
  settled(): Promise<void>;
  /** Where Parley books its requests. */
  ledger?: { mongodbUri: string; tenantId: string };
}

export interface SystemOptions {
  supervisor: Supervisor;
  dataDir: string;
  providerUrl: string;
  /** Requests that a worker runs at once; undefined: the default of 512. */
  concurrency: number | undefined;
  log: Log;
}

/** Forty chunks, sent as fast as the provider can. */
const PROVIDER_MODEL = 'sim?chunks=40';
const JSON_BODY = { 'Content-Type': 'application/json' };
/** There is one shard by default, so every tenant is on it. */
const SHARD = 0;
const SETTLE_POLL_MS = 20;
const SETTLE_TIMEOUT_MS = 60_000;

/** Calls Parley's own two endpoints, which the floor has as well. */
function askParley(url: string, headers: Record<string, string>) {
  return async (benchCase: BenchCase): Promise<Ask> => {
    const messages = promptOf(benchCase);
    const entities = benchCase.history === undefined ? [] : await fillMemory(url, headers, benchCase);
    const bodies = entities.map((entity) => JSON.stringify({ model: 'mobius', messages, entity_id: entity }));
    return {
      url: url + (benchCase.mode === 'stream' ? '/chat/stream' : '/chat'),
      headers,
      bodies: bodies.length > 0 ? bodies : [JSON.stringify({ model: 'mobius', messages })],
      prepared: (entities.length * (benchCase.history ?? 0)) / 2,
    };
  };
}

let filled = 0;

/** Creates an entity with a full memory for each client. Returns their names. */
async function fillMemory(url: string, headers: Record<string, string>, benchCase: BenchCase): Promise<string[]> {
  filled += 1;
  const entities = Array.from({ length: benchCase.clients }, (_, index) => `bench-${filled}-${index}`);
  const fill = async (entity: string) => {
    const body = JSON.stringify({ messages: [{ role: 'user', content: SENTENCE }], entity_id: entity });
    for (let turn = 0; turn < (benchCase.history ?? 0) / 2; turn += 1) {
      const response = await fetch(`${url}/chat`, { method: 'POST', headers, body });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`A conversation was answered with ${response.status}: ${text}`);
    }
  };
  await Promise.all(entities.map(fill));
  return entities;
}

async function startParley(options: SystemOptions, nodeArgs: ProcessesOptions['nodeArgs'] = {}): Promise<Contender> {
  const { supervisor, providerUrl, concurrency, log } = options;
  const dataDir = join(options.dataDir, 'parley');
  await mkdir(dataDir);
  const redis = await superviseRedis({ supervisor, dataDir, log });
  const mongo = await superviseMongo({ supervisor, dataDir, log });
  const service = await startProcesses({
    supervisor,
    dataDir,
    redisUrl: redis.url,
    mongodbUri: mongo.uri,
    provider: { url: providerUrl, model: PROVIDER_MODEL },
    nodeArgs,
    concurrency,
    isBuilt: true,
  });
  const { tenantId, key } = await openTenant(service.admin, 'Benchmark');
  const client = createRedis(redis.url, 'worker');
  await connectRedis(client);
  supervisor.defer('a connection to Redis', () => {
    client.disconnect();
  });
  const outbox = createOutbox(client, createKeyspace());
  return {
    name: 'parley',
    pids: { ...service.pids, Redis: redis.pid, ...(mongo.pid === undefined ? {} : { MongoDB: mongo.pid }) },
    prepare: askParley(service.url, { ...JSON_BODY, Authorization: `Bearer ${key}` }),
    settled: () => untilSettled(() => outbox.length(SHARD), supervisor.signal),
    ledger: { mongodbUri: mongo.uri, tenantId },
  };
}

async function untilSettled(outboxLength: () => Promise<number>, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + SETTLE_TIMEOUT_MS;
  while ((await outboxLength()) > 0) {
    if (performance.now() > deadline)
      throw new Error(`The ledger is more than ${SETTLE_TIMEOUT_MS / 1000} s behind the answers.`);
    await pause(SETTLE_POLL_MS, undefined, { signal });
  }
}

async function startFloor({
  supervisor,
  providerUrl,
  concurrency,
  log,
  ...options
}: SystemOptions): Promise<Contender> {
  const dataDir = join(options.dataDir, 'floor');
  await mkdir(dataDir);
  const redis = await superviseRedis({ supervisor, dataDir, log });
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const env = { NODE_ENV: 'production', REDIS_URL: redis.url };
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
    pids: { ingress, worker, Redis: redis.pid },
    prepare: askParley(`${origin}/platform/v1`, JSON_BODY),
    settled: () => Promise.resolve(),
  };
}

const PORTKEY = { packageName: '@portkey-ai/gateway', version: '1.15.2' };
/** The version that the package asks for does not run on Node.js 24. */
const PORTKEY_OVERRIDES = { '@hono/node-server': '1.14.1' };

/** Portkey is no dependency of this project: it is installed when it is measured. Returns its folder. */
async function installPortkey(log: Log): Promise<string> {
  const { packageName, version } = PORTKEY;
  const dir = join(ROOT, '.data', 'rivals', 'portkey');
  const installed = join(dir, 'node_modules', packageName);
  const manifest = join(installed, 'package.json');
  // Written by npm.
  const found = () =>
    existsSync(manifest) && (JSON.parse(readFileSync(manifest, 'utf8')) as { version: unknown }).version;
  if (found() === version) return installed;
  log(`installing ${packageName} ${version} into .data/rivals ...`);
  await mkdir(dir, { recursive: true });
  const wanted = { private: true, dependencies: { [packageName]: version }, overrides: PORTKEY_OVERRIDES };
  await writeFile(join(dir, 'package.json'), JSON.stringify(wanted));
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--no-save', '--loglevel=error'];
  await promisify(execFile)('npm', args, { cwd: dir });
  if (found() !== version) throw new Error(`${packageName} ${version} was not installed.`);
  return installed;
}

async function startPortkey({ supervisor, dataDir, providerUrl, log }: SystemOptions): Promise<Contender> {
  const folder = await installPortkey(log);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const pid = await superviseProgram(supervisor, {
    name: 'Portkey',
    file: join(folder, 'build', 'start-server.js'),
    args: [`--port=${port}`, '--headless'],
    env: { NODE_ENV: 'production' },
    log: { file: join(dataDir, 'portkey.log') },
    ready: () => callJson('GET', url),
  });
  const headers = {
    ...JSON_BODY,
    Authorization: 'Bearer sk-simulated',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `${providerUrl}/v1`,
  };
  return {
    name: 'portkey',
    pids: { process: pid },
    settled: () => Promise.resolve(),
    // It has no memory, so that each body holds the whole conversation.
    prepare: (benchCase) => {
      const messages = [...historyOf(benchCase), ...promptOf(benchCase)];
      const body = JSON.stringify({ model: PROVIDER_MODEL, stream: benchCase.mode === 'stream', messages });
      return Promise.resolve({ url: `${url}/v1/chat/completions`, headers, bodies: [body] });
    },
  };
}

/** Starts one system by its name. */
export function startSystem(
  name: string,
  options: SystemOptions,
  nodeArgs: ProcessesOptions['nodeArgs'],
): Promise<Contender> {
  switch (name) {
    case 'portkey':
      return startPortkey(options);
    case 'floor':
      return startFloor(options);
    default:
      return startParley(options, nodeArgs);
  }
}
