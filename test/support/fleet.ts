import { setTimeout as pause } from 'node:timers/promises';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from '../../scripts/embedded/ports.ts';
import type { EmbeddedRedis } from '../../scripts/embedded/redis.ts';
import { openOwnRedis } from '../../scripts/harness/stores.ts';
import { connectMongo } from '../../shared/mongo/connection.ts';
import { createModels } from '../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../shared/mongo/administration/catalogue.ts';
import { waitFor } from './chat.ts';
import { spawnProcess, waitUntilReady } from './processes.ts';
import type { TestProcess } from './processes.ts';
import { mongoUri } from './stores.ts';

const ADMIN_TOKEN = 'an-administrator-token-of-tests-0123456789';

export interface ApiProcess extends TestProcess {
  url: string;
  adminUrl: string;
}

export interface WorkerProcess extends TestProcess {
  /** `/health/*` and `/metrics`. */
  url: string;
}

interface ProviderCounts {
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
}

/** Processes of the service as a user starts them, on free ports, with a Redis and a database of their own. */
export interface Fleet {
  redis: EmbeddedRedis;
  models: Models;
  /** The first ingress, which answers `admin`. */
  api: ApiProcess;
  /** The settings that every process of the fleet starts with. */
  settings: Record<string, string>;
  startApi(settings?: Record<string, string>): Promise<ApiProcess>;
  startWorker(settings?: Record<string, string>): Promise<WorkerProcess>;
  /** Changes the simulated provider's settings; without any, takes all changes back. */
  changeProvider(settings?: object): Promise<void>;
  /** The provider's own count by request id. */
  providerCounts(): Promise<Map<string, ProviderCounts>>;
  providerUrl: string;
  admin(method: string, path: string, body?: object): Promise<Record<string, unknown>>;
  /** A tenant with credits and keys of both kinds. */
  startTenant(credits: number, more?: object): Promise<{ tenantId: string; liveKey: string; testKey: string }>;
  /** The tenant's figures once nothing is held or waits for settlement. */
  atRest(tenantId: string): Promise<{ balance: number; spentMicro: number; requestIds: string[] }>;
  close(): Promise<void>;
}

/** A store that is slow on a busy machine is asked again. */
const TRIES = 5;

async function callJson(method: string, url: string, body?: object, tries = TRIES): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method,
    headers: { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (response.status === 503 && tries > 0) {
    await pause(500);
    return callJson(method, url, body, tries - 1);
  }
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`);
  // Objects only, by docs/spec.md#conventions.
  return (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
}

/**
 * The settings of docs/spec.md#settings that have no default, and a worker that a test need not wait for
 * long.
 */
export function settingsFor(redisUrl: string, mongodbUri: string): Record<string, string> {
  return {
    REDIS_URL: redisUrl,
    MONGODB_URI: mongodbUri,
    ADMIN_TOKEN,
    CREDENTIALS_KEY: Buffer.alloc(32, 7).toString('base64'),
    REQUEST_TIMEOUT_SECONDS: '60',
  };
}

export async function openFleet(): Promise<Fleet> {
  const name = `e2e${randomBytes(6).toString('hex')}`;
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-e2e-'));
  const started: TestProcess[] = [];
  const redis = await openOwnRedis({ dataDir });
  const settings = settingsFor(redis.url, mongoUri(name));

  async function start(file: Parameters<typeof spawnProcess>[0], own: Record<string, string>, readyUrl: string) {
    const child = spawnProcess(file, { ...settings, ...own });
    started.push(child);
    await waitUntilReady(child, readyUrl);
    return child;
  }

  const providerPort = await freePort();
  const providerUrl = `http://127.0.0.1:${providerPort}`;
  await start('scripts/simulated-provider/main.ts', { PROVIDER_PORT: String(providerPort) }, `${providerUrl}/stats`);

  async function startApi(own: Record<string, string> = {}): Promise<ApiProcess> {
    const [port, adminPort] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${port}`;
    const ports = { PORT: String(port), ADMIN_PORT: String(adminPort) };
    const child = await start('api/main.ts', { ...ports, ...own }, `${url}/health/ready`);
    return { ...child, url, adminUrl: `http://127.0.0.1:${adminPort}` };
  }

  const api = await startApi();
  const admin: Fleet['admin'] = (method, path, body) => callJson(method, `${api.adminUrl}/admin/v1${path}`, body);
  await admin('PUT', '/providers/simulated', { kind: 'simulated', base_url: `${providerUrl}/v1` });
  const targets = [{ provider: 'simulated', model: 'sim', context_window: 128_000 }];
  await admin('PUT', '/tiers/mobius', { rates: { prompt: 1, completion: 1 }, targets });
  await admin('PUT', '/tiers/oloid', { rates: { prompt: 4, completion: 4 }, targets });
  const mongo = await connectMongo(settings['MONGODB_URI'] ?? '');
  const models = createModels(mongo);

  return {
    redis,
    models,
    api,
    settings,
    startApi,
    providerUrl,
    admin,
    async startWorker(own = {}) {
      const port = await freePort();
      const url = `http://127.0.0.1:${port}`;
      const child = await start('workers/main.ts', { WORKER_PORT: String(port), ...own }, `${url}/health/ready`);
      return { ...child, url };
    },
    async changeProvider(change) {
      await callJson(change === undefined ? 'DELETE' : 'POST', `${providerUrl}/settings`, change);
    },
    async providerCounts() {
      const { by_request: counts } = await callJson('GET', `${providerUrl}/stats?detail=1`);
      return new Map(Object.entries(counts as Record<string, ProviderCounts>));
    },
    async startTenant(credits, more = {}) {
      const limits = { rpm: 100_000, tpm: 100_000_000, chat_rpm: 100_000, stream_rpm: 100_000, tenant_rpm: null };
      const { id } = await admin('POST', '/tenants', { name: 'test', credits, ...limits, ...more });
      const keyOf = (mode: string) => admin('POST', `/tenants/${String(id)}/keys`, { name: mode, mode });
      const [live, test] = [await keyOf('live'), await keyOf('test')];
      return { tenantId: String(id), liveKey: String(live['value']), testKey: String(test['value']) };
    },
    async atRest(tenantId) {
      return waitFor(
        async () => {
          const tenant = await admin('GET', `/tenants/${tenantId}`);
          const account = await models.accounts.findById(tenantId).lean();
          const lines = await models.ledger.find({ tenantId }).lean();
          const balance = Number(tenant['balance']);
          // What is pending is in the balance that the administrator sees, and not yet in account and ledger.
          const isSettled = tenant['held'] === 0 && Math.round(balance * 1e6) === account?.balanceMicro;
          const sum = lines.reduce((total, { amountMicro }) => total + amountMicro, 0);
          if (!isSettled || sum !== account.balanceMicro) return undefined;
          const rows = lines.filter(({ type }) => type === 'usage');
          const spentMicro = rows.reduce((total, { amountMicro }) => total - amountMicro, 0);
          return { balance, spentMicro, requestIds: rows.map(({ requestId }) => String(requestId)) };
        },
        'rest',
        30_000,
      );
    },
    async close() {
      await Promise.all(started.map((child) => child.kill()));
      await mongo.close();
      await redis.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
