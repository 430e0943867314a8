import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { createAdminApi } from '../../../scripts/harness/admin-api.ts';
import type { AdminApi } from '../../../scripts/harness/admin-api.ts';
import { UNLIMITED } from '../../../scripts/harness/open-tenant.ts';
import { ROUTED_TIERS } from '../../../shared/contracts/chat-request.ts';
import type { ProcessExit } from '../checker/evidence.ts';
import { createCaller } from '../client/caller.ts';
import { createGatherEvidence, readProviderCounts } from './gather-evidence.ts';
import { openRedisInspector } from './inspect-redis.ts';
import type { Lab, LabOptions } from './lab.ts';
import { openLabProcesses } from './lab-processes.ts';
import { createLabTenants } from './lab-tenants.ts';
import { liveBytes } from './live-memory.ts';
import { runningOf } from './victim.ts';
import { noGroup, noStore, openRedisGroup } from './victim-groups.ts';
import { openGivenMongo, openMongoVictim, openRedisVictim } from './victim-stores.ts';
import { until } from './until.ts';

const WAIT_MS = 30_000;
const REST_MS = 60_000;
/** Of the tiers, in credits a token. */
const RATES = {
  mobius: { prompt: 1, completion: 1 },
  oloid: { prompt: 4, completion: 4 },
  embedding: { prompt: 1, completion: 0 },
} as const;
const MICRO = 1_000_000;
const RATES_MICRO = Object.fromEntries(
  Object.entries(RATES).map(([tier, { prompt, completion }]) => [
    tier,
    { prompt: prompt * MICRO, completion: completion * MICRO },
  ]),
);

export interface LabPlace {
  /** Takes the data of the stores and, in `logs`, the logs. */
  dataDir: string;
  signal: AbortSignal;
  /** A MongoDB that runs already; it is given a database of its own. */
  mongodbUri?: string;
}

async function openStores({ dataDir, signal, mongodbUri }: LabPlace, options: LabOptions, exits: ProcessExit[]) {
  const { redis: kind } = options;
  const [redisGroup, redis, mongo] = await Promise.all([
    kind === undefined ? noGroup('') : openRedisGroup(kind, { dataDir, signal, exits }),
    kind === undefined ? openRedisVictim({ dataDir, signal, exits }) : noStore(''),
    mongodbUri === undefined ? openMongoVictim({ dataDir, signal, exits }) : openGivenMongo(mongodbUri),
  ]);
  return { redisGroup, redis, mongo, redisUrl: kind === undefined ? redis.url : redisGroup.url };
}

async function setRoutes(admin: AdminApi, providerUrl: string, apiKey: string, { models, maxInFlight }: LabOptions) {
  const provider = { kind: 'simulated', base_url: `${providerUrl}/v1`, api_key: apiKey };
  await admin.send('PUT', '/admin/v1/providers/simulated', provider);
  for (const tier of ROUTED_TIERS) {
    const model = models?.[tier] ?? 'sim';
    const ceiling = maxInFlight === undefined ? {} : { max_in_flight: maxInFlight };
    const targets = [
      {
        provider: 'simulated',
        model,
        weight: 1,
        priority: 1,
        ...(tier === 'embedding' ? {} : { context_window: 128_000 }),
        ...ceiling,
      },
    ];
    await admin.send('PUT', `/admin/v1/tiers/${tier}`, { rates: RATES[tier], targets });
  }
}

/** The sum of a metric's values on a metrics page. */
async function readMetric(url: string, name: string, token: string, signal: AbortSignal): Promise<number> {
  const page = await (await fetch(url, { headers: { Authorization: `Bearer ${token}` }, signal })).text();
  const values = page.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

export async function openLab(place: LabPlace, options: LabOptions): Promise<Lab> {
  const { dataDir, signal } = place;
  const logDir = join(dataDir, 'logs');
  await mkdir(logDir, { recursive: true });
  const exits: ProcessExit[] = [];
  const { shards = 1, limits = UNLIMITED } = options;
  const { redisGroup, redis, redisUrl, mongo } = await openStores(place, options, exits);
  const secrets = {
    ADMIN_TOKEN: randomBytes(24).toString('hex'),
    CREDENTIALS_KEY: randomBytes(32).toString('base64'),
    'provider key': `sk-provider-${randomBytes(12).toString('hex')}`,
  };
  const env = {
    REDIS_URL: redisUrl,
    QUEUE_SHARDS: String(shards),
    MONGODB_URI: mongo.url,
    ADMIN_TOKEN: secrets.ADMIN_TOKEN,
    CREDENTIALS_KEY: secrets.CREDENTIALS_KEY,
    REQUEST_TIMEOUT_SECONDS: '120',
    DISCONNECT_GRACE_SECONDS: '5',
    DRAIN_SECONDS: '0',
    ...options.settings,
  };
  const processes = await openLabProcesses({ env, logDir, signal, exits, ...options });
  const { providerUrl, ingresses, workers, startIngress, startWorker } = processes;

  const caller = createCaller();
  const inspector = await openRedisInspector(redisUrl, shards);
  const admin = () => createAdminApi(processes.adminUrl(), secrets.ADMIN_TOKEN);
  const tenants = createLabTenants(admin, limits);
  const gatherAtRest = createGatherEvidence({
    options,
    processes,
    inspector,
    caller,
    tenants,
    mongoUrl: mongo.url,
    env,
    secrets,
    rates: RATES_MICRO,
    exits,
    logDir,
    signal,
  });

  let closing: Promise<void> | undefined;
  async function killAll(): Promise<void> {
    caller.leaveAll();
    inspector.close();
    await processes.killAll();
    await Promise.all([redis.stop(), redisGroup.stop(), mongo.stop()]);
  }

  const lab: Lab = {
    signal,
    caller,
    redis,
    redisGroup,
    redisDir: join(dataDir, 'redis'),
    mongo,
    inspector,
    ingresses,
    workers,
    pathsOf: processes.pathsOf,
    startIngress,
    startWorker,
    urlOf(index) {
      const live = runningOf(ingresses);
      return live[index % live.length]?.url ?? '';
    },
    openTenant: tenants.open,
    metric: ({ metricsUrl }, name) => readMetric(metricsUrl, name, secrets.ADMIN_TOKEN, signal),
    admin,
    providerUrl,
    liveBytes: ({ name, pid }) => liveBytes(pid, join(logDir, `${name}.stderr.log`)),
    providerCounts: () => readProviderCounts(providerUrl),
    async waitFor(check, what, timeoutMs = WAIT_MS) {
      if (!(await until(check, { timeoutMs, signal }))) throw new Error(`Waited in vain for ${what}.`);
    },
    async untilEnded(timeoutMs = REST_MS) {
      const hasEnded = () => caller.requests.every(({ readings }) => readings.every(({ end }) => end !== 'open'));
      await until(hasEnded, { timeoutMs, signal });
    },
    async gather() {
      await lab.untilEnded();
      return gatherAtRest();
    },
    close: () => (closing ??= killAll()),
  };

  try {
    // The first one makes the collections; workers that start after the routes have them at once.
    await startIngress({}, options.roots?.ingress);
    await setRoutes(admin(), providerUrl, secrets['provider key'], options);
    const more = Array.from({ length: (options.ingresses ?? 2) - 1 }, () => startIngress({}, options.roots?.ingress));
    const crew = Array.from({ length: options.workers ?? 2 }, () => startWorker({}, options.roots?.worker));
    await Promise.all([...more, ...crew]);
    return lab;
  } catch (error) {
    await lab.close();
    throw error;
  }
}
