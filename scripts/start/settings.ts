import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { ConfigError, loadConfig } from '../../shared/config/load-config.ts';
import type { Config } from '../../shared/config/settings.ts';
import { looksLikeApiKey } from '../../shared/domain/api-key.ts';
import type { Environment } from '../embedded/find-program.ts';
import type { WantedPort } from '../embedded/ports.ts';
import { OLLAMA_URL } from './model-server.ts';
import type { ServerSettings } from './model-server.ts';

const WORKER_PORT_DEFAULT = '8082';
const PROVIDER_PORT_DEFAULT = '8090';
const WORKERS_MAX = 32;

/** Who answers the demo's requests; a port is that of a process which is started for it. */
export type AnswerSettings =
  | { from: 'simulated' | 'local'; port: number }
  | { from: 'server'; server: ServerSettings }
  | { from: 'keys'; openaiKey: string | undefined; anthropicKey: string | undefined };

/** What `npm start` is to do, from the environment and its arguments. */
export interface StartSettings {
  dataDir: string;
  /** `npm run dev`: each process is started again when one of its files changes, and can be debugged. */
  isWatched: boolean;
  /** `--demo`: plays a week of traffic, once. */
  isDemo: boolean;
  host: string;
  /** How this machine reaches the ingress. */
  baseUrl: string;
  adminUrl: string;
  config: Config;
  /** By worker; 0: it has no health port. */
  workerPorts: readonly number[];
  answers: AnswerSettings;
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
  const { workers, isWatched, isLocal, isDemo } = readArguments(args, faults);
  const answers = readAnswers(env, { isLocal, isDemo }, faults);
  if (isDemo) Object.assign(env, { PAYMENTS: 'test', WEBHOOK_ALLOW_PRIVATE: 'true' });
  for (const name of ['PORT', 'ADMIN_PORT'])
    if (Number(env[name] ?? 1) === 0)
      faults.push(`${name} must be a port, 1 to 65535: npm start has to know where the service is reached.`);
  const config = readConfig({ ...NOT_KNOWN_YET, ...env }, faults);
  if (config !== undefined && answers.from === 'keys') faults.push(...ownKeyFaults(env, config.process.keyPrefix));
  if (config === undefined || faults.length > 0) throw new ConfigError(faults);
  const { host, port, adminHost, adminPort, workerPort } = config.http;
  const originOf = (listening: string) =>
    `${config.tls.certFile === undefined ? 'http' : 'https'}://${reachable(listening)}`;
  return {
    dataDir: resolve(env['DATA_DIR'] ?? '.data'),
    isWatched,
    isDemo,
    host,
    baseUrl: `${originOf(host)}:${port}`,
    adminUrl: `${originOf(adminHost)}:${adminPort}`,
    config,
    workerPorts: Array.from({ length: workers }, (_, index) => (workerPort === 0 ? 0 : workerPort + index)),
    answers,
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
export function wantedPorts({ config, host, workerPorts, answers }: StartSettings): WantedPort[] {
  return [
    { setting: 'PORT', port: config.http.port, host },
    { setting: 'ADMIN_PORT', port: config.http.adminPort, host: config.http.adminHost },
    ...workerPorts.filter((port) => port !== 0).map((port) => ({ setting: 'WORKER_PORT', port, host })),
    ...('port' in answers ? [{ setting: 'PROVIDER_PORT', port: answers.port, host: '127.0.0.1' }] : []),
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

interface Arguments {
  workers: number;
  isWatched: boolean;
  isLocal: boolean;
  isDemo: boolean;
}

function readArguments(args: string[], faults: string[]): Arguments {
  try {
    const { values } = parseArgs({
      args,
      options: {
        workers: { type: 'string', default: '1' },
        watch: { type: 'boolean', default: false },
        local: { type: 'boolean', default: false },
        demo: { type: 'boolean', default: false },
      },
    });
    const workers = Number(values.workers);
    if (Number.isInteger(workers) && workers >= 1 && workers <= WORKERS_MAX) {
      return { workers, isWatched: values.watch, isLocal: values.local, isDemo: values.demo };
    }
    faults.push(`--workers must be a whole number from 1 to ${WORKERS_MAX}.`);
  } catch (error) {
    faults.push(error instanceof Error ? error.message : String(error));
  }
  return { workers: 1, isWatched: false, isLocal: false, isDemo: false };
}

/**
 * `--demo`, `--local` and `PROVIDER_URL` say what is meant here; a provider's key may be in the shell for other programs.
 */
function readAnswers(
  env: Environment,
  { isLocal, isDemo }: Pick<Arguments, 'isLocal' | 'isDemo'>,
  faults: string[],
): AnswerSettings {
  const port = readProviderPort(env['PROVIDER_PORT'] ?? PROVIDER_PORT_DEFAULT, faults);
  const server = readServer(env, faults);
  if (isLocal && server !== undefined)
    faults.push('--local and PROVIDER_URL name two models to answer: leave one of them out.');
  if (isDemo && (isLocal || server !== undefined))
    faults.push('--demo plays its traffic with simulated answers: leave out --local and PROVIDER_URL.');
  if (isDemo) return { from: 'simulated', port };
  if (isLocal) return { from: 'local', port };
  if (server !== undefined) return { from: 'server', server };
  const openaiKey = env['OPENAI_API_KEY'];
  const anthropicKey = env['ANTHROPIC_API_KEY'];
  if (openaiKey === undefined && anthropicKey === undefined) return { from: 'simulated', port };
  return { from: 'keys', openaiKey, anthropicKey };
}

function readServer(env: Environment, faults: string[]): ServerSettings | undefined {
  const model = env['PROVIDER_MODEL'];
  const key = env['PROVIDER_KEY'];
  const given = env['PROVIDER_URL'];
  if (given === undefined) {
    if (model !== undefined || key !== undefined)
      faults.push('PROVIDER_MODEL and PROVIDER_KEY need PROVIDER_URL, the address of the server that has the model.');
    return undefined;
  }
  const url = URL.parse(given);
  if (url === null || !/^https?:$/.test(url.protocol) || /[?#\s@]/.test(given))
    faults.push(
      `PROVIDER_URL must be an http or https URL without a query or credentials, such as ${OLLAMA_URL} (Ollama).`,
    );
  return { url: given.replace(/\/+$/, ''), model, key };
}

function readProviderPort(text: string, faults: string[]): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) faults.push('PROVIDER_PORT must be a port, 1 to 65535.');
  return port;
}
