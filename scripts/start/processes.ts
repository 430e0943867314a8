import type { Environment } from '../embedded/find-program.ts';
import type { Log } from '../embedded/run-step.ts';
import type { ServerOptions } from '../embedded/server-process.ts';
import { assertReady, callJson } from '../harness/http.ts';
import { QUIET, ROOT, SERVICE_ENV, SERVICE_OPTIONS } from '../harness/program.ts';
import { reachable } from './settings.ts';
import type { StartSettings } from './settings.ts';
import type { Supervisor } from '../harness/supervisor.ts';

const READY_TIMEOUT_MS = 60_000;
/** Beyond a process's own grace: it ends itself first, with a line that says why. */
const STOP_MARGIN_MS = 12_000;
/** workers/main.ts has 30 s for what closes. */
const WORKER_STOP_MARGIN_MS = 32_000;
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
  /** Where a debugger can attach, of a process that is watched. */
  inspectPort: number | undefined;
}

/** Of the first worker; the ingress has Node.js's own, 9229. .vscode/launch.json attaches to these. */
const WORKER_INSPECT_PORT = 9_230;
const INGRESS_INSPECT_PORT = 9_229;

/** Type stripping keeps lines and columns, so that stack traces and breakpoints need no source map. */
function watching(inspectPort: number | undefined): string[] {
  if (inspectPort === undefined) return [];
  return ['--watch', '--watch-preserve-output', `--inspect=127.0.0.1:${inspectPort}`];
}

function optionsFor(
  { name, file, prefix, env, ready, stopTimeoutMs, inspectPort }: Service,
  print: Log,
): ServerOptions {
  return {
    name,
    command: process.execPath,
    args: [QUIET, ...SERVICE_OPTIONS, ...watching(inspectPort), file],
    cwd: ROOT,
    env: { ...SERVICE_ENV, ...env },
    ready,
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs,
    onLine: (line) => {
      print(`${prefix} | ${line}`);
    },
  };
}

/** The simulated provider, at the loopback address only. */
export function startSimulatedProvider(
  supervisor: Supervisor,
  env: Environment,
  port: number,
  print: Log,
): Promise<void> {
  const service: Service = {
    name: 'The simulated provider',
    file: 'scripts/simulated-provider/main.ts',
    prefix: 'provider',
    env: { ...env, HOST: '127.0.0.1', PROVIDER_PORT: String(port) },
    ready: () => callJson('GET', `http://127.0.0.1:${port}/stats`, { timeoutMs: 3_000 }),
    stopTimeoutMs: PROVIDER_STOP_MS,
    inspectPort: undefined,
  };
  return supervisor.start('provider', optionsFor(service, print));
}

/** The ingress, then the workers at once: the first process makes the collections, which nobody writes to until then. */
export async function startServiceProcesses(
  supervisor: Supervisor,
  settings: StartSettings,
  env: Environment,
  print: Log,
): Promise<void> {
  const { config, baseUrl, host, workerPorts, isWatched } = settings;
  const api: Service = {
    name: 'The ingress',
    file: 'api/main.ts',
    prefix: 'api',
    env,
    ready: () => assertReady(`${baseUrl}/health/ready`),
    stopTimeoutMs: (config.http.drainSeconds + config.limits.shutdownGraceSeconds) * 1000 + STOP_MARGIN_MS,
    inspectPort: isWatched ? INGRESS_INSPECT_PORT : undefined,
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
      // A worker finishes what it runs, up to the request's time limit (docs/spec.md#processes).
      stopTimeoutMs: config.limits.requestTimeoutSeconds * 1000 + WORKER_STOP_MARGIN_MS,
      inspectPort: isWatched ? WORKER_INSPECT_PORT + index : undefined,
    };
    return supervisor.start('service', optionsFor(worker, print));
  });
  // All of them, so that none is still starting when the first failure stops everything.
  const failed = (await Promise.allSettled(starts)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
