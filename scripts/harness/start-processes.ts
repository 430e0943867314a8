import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import type { Environment } from '../embedded/find-program.ts';
import { freePort } from '../embedded/ports.ts';
import { createAdminApi } from './admin-api.ts';
import type { AdminApi } from './admin-api.ts';
import { assertReady, callJson } from './http.ts';
import type { Supervisor } from './supervisor.ts';
import { SERVICE_ENV, SERVICE_OPTIONS, superviseProgram } from './program.ts';

export interface ProcessesOptions {
  supervisor: Supervisor;
  /** The folder for logs. */
  dataDir: string;
  redisUrl: string;
  mongodbUri: string;
  /** The target of both tiers: a simulated provider and its model, which may contain settings (`sim?chunks=40`). */
  provider: { url: string; model: string };
  /** Node.js options for one of the processes, such as `--cpu-prof`. */
  nodeArgs?: { ingress?: readonly string[]; worker?: readonly string[] };
  /** Runs the output of `npm run build`, like the image. Default: the sources. */
  isBuilt?: boolean;
  /** Concurrency of the worker; undefined: the default. */
  concurrency?: number | undefined;
}

/**
 * Starts an ingress and a worker as a user would (production, default `LOG_LEVEL`, log in a file), on free ports.
 * The ingress starts first: it creates the collections, and a worker that starts later knows the routes at once.
 */
export async function startProcesses(options: ProcessesOptions) {
  const { supervisor, dataDir, redisUrl, mongodbUri, provider, nodeArgs = {}, concurrency } = options;
  const fileOf = (name: string) => (options.isBuilt === true ? `dist/${name}.js` : `${name}.ts`);
  const adminToken = randomBytes(24).toString('hex');
  const [port, adminPort] = [await freePort(), await freePort()];
  const env: Environment = {
    ...SERVICE_ENV,
    NODE_ENV: 'production',
    DRAIN_SECONDS: '0',
    REDIS_URL: redisUrl,
    MONGODB_URI: mongodbUri,
    ADMIN_TOKEN: adminToken,
    CREDENTIALS_KEY: randomBytes(32).toString('base64'),
    // An image has no compile cache, which takes 10 MB of a process's memory (docs/benchmarks/performance-log.md).
    ...(options.isBuilt === true ? { NODE_COMPILE_CACHE: undefined } : {}),
  };
  const origin = `http://127.0.0.1:${port}`;
  const ingress = await superviseProgram(supervisor, {
    name: 'The ingress',
    file: fileOf('api/main'),
    nodeArgs: [...SERVICE_OPTIONS, ...(nodeArgs.ingress ?? [])],
    env: { ...env, PORT: String(port), ADMIN_PORT: String(adminPort) },
    log: { file: join(dataDir, 'api.log') },
    ready: () => assertReady(`${origin}/health/ready`),
  });
  const admin = createAdminApi(`http://127.0.0.1:${adminPort}`, adminToken);
  await routeToSimulated(admin, provider.url, provider.model);
  const workerPort = await freePort();
  const worker = await superviseProgram(supervisor, {
    name: 'The worker',
    file: fileOf('workers/main'),
    nodeArgs: [...SERVICE_OPTIONS, ...(nodeArgs.worker ?? [])],
    env: {
      ...env,
      WORKER_PORT: String(workerPort),
      ...(concurrency === undefined ? {} : { WORKER_CONCURRENCY: String(concurrency) }),
    },
    log: { file: join(dataDir, 'worker.log') },
    ready: () => assertReady(`http://127.0.0.1:${workerPort}/health/ready`),
  });
  return { url: `${origin}/platform/v1`, admin, pids: { ingress, worker } };
}

const PROVIDER = 'simulated';
/** The default rates of docs/spec.md#price, in credits per token. */
export const RATES = {
  mobius: { prompt: 1, completion: 1 },
  oloid: { prompt: 4, completion: 4 },
  embedding: { prompt: 0.1, completion: 0 },
} as const;

/** Routes all tiers to the simulated provider; `model` may contain its settings, as in `sim?chunks=40`. */
async function routeToSimulated(admin: AdminApi, providerUrl: string, model: string): Promise<void> {
  await admin.send('PUT', `/admin/v1/providers/${PROVIDER}`, { kind: 'simulated', base_url: `${providerUrl}/v1` });
  for (const [tier, rates] of Object.entries(RATES)) {
    const targets = [{ provider: PROVIDER, model, weight: 1, priority: 1 }];
    await admin.send('PUT', `/admin/v1/tiers/${tier}`, { rates, targets });
  }
}

/** Starts the simulated provider on a free port; `url` has no version segment. */
export async function superviseProvider(
  supervisor: Supervisor,
  dataDir: string,
): Promise<{ url: string; pid: number }> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const pid = await superviseProgram(supervisor, {
    name: 'The simulated provider',
    file: 'scripts/simulated-provider/main.ts',
    env: { PROVIDER_PORT: String(port), NODE_ENV: 'production' },
    log: { file: join(dataDir, 'provider.log') },
    ready: () => callJson('GET', `${url}/health/live`),
  });
  return { url, pid };
}
