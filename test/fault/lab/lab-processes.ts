import { freePort } from '../../../scripts/embedded/ports.ts';
import { assertReady, callJson } from '../../../scripts/harness/http.ts';
import { ROOT } from '../../../scripts/harness/program.ts';
import type { ProcessExit } from '../checker/evidence.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { Ingress, Lab, LabOptions, Paths, Worker } from './lab.ts';
import { startVictim } from './victim.ts';
import type { Victim } from './victim.ts';

export interface LabProcessesOptions extends Pick<LabOptions, 'provider' | 'ownPaths'> {
  /** Settings of every process. */
  env: Record<string, string> & Record<'REDIS_URL' | 'MONGODB_URI', string>;
  logDir: string;
  signal: AbortSignal;
  /** Gets a line for every process that ends. */
  exits: ProcessExit[];
}

/** The simulated provider, ingresses and workers, each with ports and a log of its own. */
export interface LabProcesses extends Pick<
  Lab,
  'ingresses' | 'workers' | 'pathsOf' | 'startIngress' | 'startWorker' | 'providerUrl'
> {
  /** The administration of the ingress that was started last. */
  adminUrl(): string;
  /** SIGKILL to all that run. */
  killAll(): Promise<void>;
}

/** Starts the simulated provider; ingresses and workers are started one by one. */
export async function openLabProcesses(options: LabProcessesOptions): Promise<LabProcesses> {
  const { env, logDir, signal, exits, provider, ownPaths = false } = options;
  const victims: Victim[] = [];
  const ingresses: Ingress[] = [];
  const workers: Worker[] = [];
  /** By the name of their process. */
  const paths = new Map<string, Paths>();
  const started = { ingress: 0, worker: 0 };
  let adminUrl = '';

  async function openPaths(name: string): Promise<Record<string, string>> {
    const [redis, mongo] = await Promise.all([openTcpProxy(env.REDIS_URL), openTcpProxy(env.MONGODB_URI)]);
    paths.set(name, { redis, mongo });
    return { REDIS_URL: redis.url, MONGODB_URI: mongo.url };
  }

  async function start(name: string, file: string, own: Record<string, string>, url: string, root = ROOT) {
    const ready = () => assertReady(url);
    const byPaths = ownPaths && name !== 'provider' ? await openPaths(name) : {};
    const settings = { ...env, ...byPaths, ...own };
    const victim = await startVictim({ name, file, root, env: settings, logDir, ready, signal }, exits);
    victims.push(victim);
    return victim;
  }

  async function startProvider(): Promise<string> {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const file = 'scripts/simulated-provider/main.ts';
    await start('provider', file, { PROVIDER_PORT: String(port) }, `${url}/health/live`);
    if (provider !== undefined) {
      const settings = Object.fromEntries(new URLSearchParams(provider));
      await callJson('POST', `${url}/settings`, { body: settings });
    }
    return url;
  }

  async function startIngress(own: Record<string, string> = {}, root?: string): Promise<Ingress> {
    const [port, adminPort] = [own['PORT'] ?? (await freePort()), await freePort()];
    started.ingress += 1;
    const url = `http://127.0.0.1:${port}`;
    const settings = { PORT: String(port), ADMIN_PORT: String(adminPort), ...own };
    const victim = await start(`ingress-${started.ingress}`, 'api/main.ts', settings, `${url}/health/ready`, root);
    adminUrl = `http://127.0.0.1:${adminPort}`;
    const ingress = { ...victim, url, adminUrl, metricsUrl: `${adminUrl}/metrics` };
    ingresses.push(ingress);
    return ingress;
  }

  async function startWorker(own: Record<string, string> = {}, root?: string): Promise<Worker> {
    const port = await freePort();
    started.worker += 1;
    const url = `http://127.0.0.1:${port}`;
    const settings = { WORKER_PORT: String(port), ...own };
    const victim = await start(`worker-${started.worker}`, 'workers/main.ts', settings, `${url}/health/ready`, root);
    const worker = { ...victim, metricsUrl: `${url}/metrics` };
    workers.push(worker);
    return worker;
  }

  return {
    providerUrl: await startProvider(),
    ingresses,
    workers,
    pathsOf({ name }) {
      const own = paths.get(name);
      if (own === undefined) throw new Error(`${name} has no paths of its own.`);
      return own;
    },
    startIngress,
    startWorker,
    adminUrl: () => adminUrl,
    async killAll() {
      await Promise.all(victims.filter((victim) => victim.isRunning()).map((victim) => victim.kill()));
      await Promise.all([...paths.values()].flatMap(({ redis, mongo }) => [redis.close(), mongo.close()]));
    },
  };
}
