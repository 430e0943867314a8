import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { ConfigError, loadConfig } from '../../shared/config/load-config.ts';
import type { Config } from '../../shared/config/load-config.ts';
import { looksLikeApiKey } from '../../shared/domain/keys/api-key.ts';
import type { Environment } from '../embedded/find-program.ts';
import type { WantedPort } from '../embedded/ports.ts';

const WORKER_PORT_DEFAULT = '8082';
const PROVIDER_PORT_DEFAULT = '8090';
const WORKERS_MAX = 32;

/** What `npm start` is to do, from the environment and its arguments. */
export interface StartSettings {
  dataDir: string;
  /** `npm run dev`: each process is started again when one of its files changes, and can be debugged. */
  isWatched: boolean;
  host: string;
  /** How this machine reaches the ingress. */
  baseUrl: string;
  adminUrl: string;
  config: Config;
  /** By worker; 0: it has no health port. */
  workerPorts: readonly number[];
  /** Undefined where requests go to a real provider. */
  providerPort: number | undefined;
  openaiKey: string | undefined;
  anthropicKey: string | undefined;
  /** The environment of the processes that does not depend on what is started first. */
  env: Environment;
}

/** Stand-ins for what is only known later, so that everything else can be checked before anything is started. */
const NOT_KNOWN_YET = {
  REDIS_URL: 'redis://127.0.0.1:1',
  MONGODB_URI: 'mongodb://127.0.0.1:1/parley',
  ADMIN_TOKEN: 'stands-in-for-one-that-is-made-later',
  CREDENTIALS_KEY: Buffer.alloc(32).toString('base64'),
};

/** Throws a ConfigError that lists every fault. */
export function readSettings(given: Environment, args: string[]): StartSettings {
  const env: Environment = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
  env['WORKER_PORT'] ??= WORKER_PORT_DEFAULT;
  if (env['STRIPE_SECRET_KEY'] === undefined && env['NODE_ENV'] !== 'production') env['PAYMENTS'] ??= 'test';
  const faults: string[] = [];
  const { workers, isWatched } = readArguments(args, faults);
  const usesSimulated = env['OPENAI_API_KEY'] === undefined && env['ANTHROPIC_API_KEY'] === undefined;
  const providerPort = readProviderPort(env['PROVIDER_PORT'] ?? PROVIDER_PORT_DEFAULT, faults);
  for (const name of ['PORT', 'ADMIN_PORT'])
    if (Number(env[name] ?? 1) === 0)
      faults.push(`${name} must be a port, 1 to 65535: npm start has to know where the service is reached.`);
  const config = readConfig({ ...NOT_KNOWN_YET, ...env }, faults);
  if (config !== undefined) faults.push(...ownKeyFaults(env, config.keyPrefix));
  if (config === undefined || faults.length > 0) throw new ConfigError(faults);
  const { host, port, adminHost, adminPort, workerPort, tls } = config.http;
  const originOf = (listening: string) => `${tls === undefined ? 'http' : 'https'}://${reachable(listening)}`;
  return {
    dataDir: resolve(env['DATA_DIR'] ?? '.data'),
    isWatched,
    host,
    baseUrl: `${originOf(host)}:${port}`,
    adminUrl: `${originOf(adminHost)}:${adminPort}`,
    config,
    workerPorts: Array.from({ length: workers }, (_, index) => (workerPort === 0 ? 0 : workerPort + index)),
    providerPort: usesSimulated ? providerPort : undefined,
    openaiKey: env['OPENAI_API_KEY'],
    anthropicKey: env['ANTHROPIC_API_KEY'],
    env,
  };
}

/** Whoever tries a stock client exports a key of this service under the name of its provider's. */
function ownKeyFaults(env: Environment, keyPrefix: string): string[] {
  return ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY']
    .filter((name) => looksLikeApiKey(env[name] ?? '', keyPrefix))
    .map((name) => `${name} holds one of Parley's own keys, not the provider's; unset it, or set the provider's key.`);
}

/** Every port that has to be free. */
export function wantedPorts({ config, host, workerPorts, providerPort }: StartSettings): WantedPort[] {
  return [
    { setting: 'PORT', port: config.http.port, host },
    { setting: 'ADMIN_PORT', port: config.http.adminPort, host: config.http.adminHost },
    ...workerPorts.filter((port) => port !== 0).map((port) => ({ setting: 'WORKER_PORT', port, host })),
    ...(providerPort === undefined ? [] : [{ setting: 'PROVIDER_PORT', port: providerPort, host: '127.0.0.1' }]),
  ];
}

/** An address to listen on that stands for all of them is reached through the loopback one. */
export function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

function readConfig(env: Environment, faults: string[]): Config | undefined {
  try {
    return loadConfig(env, 'api');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    faults.push(...error.faults);
    return undefined;
  }
}

function readArguments(args: string[], faults: string[]): { workers: number; isWatched: boolean } {
  try {
    const { values } = parseArgs({
      args,
      options: { workers: { type: 'string', default: '1' }, watch: { type: 'boolean', default: false } },
    });
    const workers = Number(values.workers);
    if (Number.isInteger(workers) && workers >= 1 && workers <= WORKERS_MAX) {
      return { workers, isWatched: values.watch };
    }
    faults.push(`--workers must be a whole number from 1 to ${WORKERS_MAX}.`);
  } catch (error) {
    faults.push(error instanceof Error ? error.message : String(error));
  }
  return { workers: 1, isWatched: false };
}

function readProviderPort(text: string, faults: string[]): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) faults.push('PROVIDER_PORT must be a port, 1 to 65535.');
  return port;
}
