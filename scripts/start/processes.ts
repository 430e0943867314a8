import { join } from 'node:path';

import type { Environment } from '../embedded/find-program.ts';
import type { Log } from '../embedded/run-step.ts';
import type { ServerOptions } from '../embedded/server-process.ts';
import { assertReady, callJson } from './http.ts';
import { reachable } from './settings.ts';
import type { StartSettings } from './settings.ts';
import type { Supervisor } from './supervisor.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const READY_TIMEOUT_MS = 60_000;
/** Beyond a process's own grace: it ends itself first, with a line that says why. */
const STOP_MARGIN_MS = 12_000;
const PROVIDER_STOP_MS = 5_000;

interface Service {
  /** As a person calls it. */
  name: string;
  file: string;
  /** Before each of its log lines. */
  prefix: string;
  env: Environment;
  ready: () => Promise<unknown>;
  stopTimeoutMs: number;
}

function optionsFor({ name, file, prefix, env, ready, stopTimeoutMs }: Service, print: Log): ServerOptions {
  return {
    name,
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', file],
    cwd: ROOT,
    env,
    ready,
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs,
    onLine: (line) => {
      print(`${prefix} | ${line}`);
    },
  };
}

/** The simulated provider, at the loopback address only. */
export function startProvider(supervisor: Supervisor, env: Environment, port: number, print: Log): Promise<void> {
  const service: Service = {
    name: 'The simulated provider',
    file: 'scripts/simulated-provider/main.ts',
    prefix: 'provider',
    env: { ...env, HOST: '127.0.0.1', PROVIDER_PORT: String(port) },
    ready: () => callJson('GET', `http://127.0.0.1:${port}/stats`, { timeoutMs: 3_000 }),
    stopTimeoutMs: PROVIDER_STOP_MS,
  };
  return supervisor.start('provider', optionsFor(service, print));
}

/** The ingress, then the workers at once: the first process makes the collections, which nobody writes to until then. */
export async function startService(
  supervisor: Supervisor,
  settings: StartSettings,
  env: Environment,
  print: Log,
): Promise<void> {
  const { config, baseUrl, host, workerPorts } = settings;
  const api: Service = {
    name: 'The ingress',
    file: 'api/main.ts',
    prefix: 'api',
    env,
    ready: () => assertReady(`${baseUrl}/health/ready`),
    stopTimeoutMs: config.limits.shutdownGraceSeconds * 1000 + STOP_MARGIN_MS,
  };
  await supervisor.start('service', optionsFor(api, print));
  const starts = workerPorts.map((port, index) => {
    const number = workerPorts.length === 1 ? '' : ` ${index + 1}`;
    const worker: Service = {
      name: `Worker${number}`,
      file: 'workers/main.ts',
      prefix: `worker${number}`,
      env: { ...env, WORKER_PORT: String(port) },
      ready: () => (port === 0 ? Promise.resolve() : assertReady(`http://${reachable(host)}:${port}/health/ready`)),
      // A worker finishes what it runs, up to the request's time limit (docs/spec/contract.md section 1).
      stopTimeoutMs: config.limits.requestTimeoutSeconds * 1000 + STOP_MARGIN_MS,
    };
    return supervisor.start('service', optionsFor(worker, print));
  });
  // All of them, so that none is still starting when the first failure stops everything.
  const failed = (await Promise.allSettled(starts)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
