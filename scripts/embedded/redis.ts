import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join, resolve } from 'node:path';

import { connectRedis, createRedis } from '../../shared/redis/connection.ts';
import { findProgram } from './find-program.ts';
import type { Environment } from './find-program.ts';
import { onFreePort } from './ports.ts';
import type { Log } from './run-step.ts';
import { startServer } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';
import { installSystemPackages } from './system-package.ts';

const READY_TIMEOUT_MS = 20_000;
const PING_TIMEOUT_MS = 2_000;
const STOP_TIMEOUT_MS = 10_000;

const PACKAGES = { apt: ['redis-server'], apk: ['redis'], dnf: ['redis'] };
const HOW_TO_GET_IT =
  'install it (Debian and Ubuntu: sudo apt-get install redis-server; Fedora: sudo dnf install redis; macOS: brew install redis) ' +
  'or set REDIS_URL to a Redis that runs';

/**
 * Lua allocates its memory from the C library. With glibc's default of seven cached chunks per size, most of a script's
 * strings take the slow path: 2 % of the server's instructions.
 */
const MALLOC = { GLIBC_TUNABLES: 'glibc.malloc.tcache_count=2000' };

export interface RedisOptions {
  /** Holds the append-only file; the same folder finds the same data. */
  dataDir: string;
  /** Default: a free one. */
  port?: number;
  /** Clients have to send it. Letters and digits only. Default: none, for tests. */
  password?: string;
  log: Log;
  /** Default: the variables of this process. */
  env?: Environment;
  /** Aborts a start that is under way. */
  signal?: AbortSignal | undefined;
}

export interface EmbeddedRedis extends Pick<ServerProcess, 'pid' | 'exited' | 'stop' | 'kill'> {
  url: string;
  /** What runs and where, for the log. */
  describe: string;
}

/** Starts `redis-server` on the loopback address; root installs it if it is missing. Rejects with one sentence. */
export async function startRedis(options: RedisOptions): Promise<EmbeddedRedis> {
  const { log, env, signal } = options;
  const command = await findRedisServer(options);
  const dataDir = resolve(options.dataDir, 'redis');
  await mkdir(dataDir, { recursive: true });
  const { password } = options;
  const secrets = password === undefined ? [] : [await writeSecrets(dataDir, password)];
  const urlOf = (port: number) => `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`;
  const [port, server] = await onFreePort(options.port, (candidate) =>
    startServer({
      name: 'Redis',
      command,
      args: [...secrets, ...serverArguments(candidate, dataDir)],
      cwd: dataDir,
      env: { ...MALLOC, ...(env ?? process.env) },
      lockFile: join(dataDir, 'server.lock'),
      ready: () => ping(urlOf(candidate)),
      readyTimeoutMs: READY_TIMEOUT_MS,
      stopTimeoutMs: STOP_TIMEOUT_MS,
      signal,
    }),
  );
  const describe = `${command} at redis://127.0.0.1:${port}, data in ${dataDir}`;
  log(`Redis: ${describe}`);
  return { ...server, url: urlOf(port), describe };
}

/** The path of `redis-server`; root installs it first if it is missing. Rejects with an error of one sentence. */
export async function findRedisServer({
  log,
  env,
  signal,
}: Pick<RedisOptions, 'log' | 'env' | 'signal'>): Promise<string> {
  const found = await findProgram('redis-server', env);
  if (found !== undefined) return found;
  log('Redis: redis-server is not on the PATH; installing it with the package manager of this system');
  const failure = await installSystemPackages({ packages: PACKAGES, log, env, signal });
  const installed = await findProgram('redis-server', env);
  if (installed !== undefined) return installed;
  const reason = failure ?? 'the package has no redis-server on the PATH';
  throw new Error(`Redis: redis-server is not on the PATH and ${reason}: ${HOW_TO_GET_IT}.`);
}

/** The password is in a file, because every user of the machine can read a process's arguments. */
async function writeSecrets(dataDir: string, password: string): Promise<string> {
  const file = join(dataDir, 'secrets.conf');
  await writeFile(file, `requirepass ${password}\n`, { mode: 0o600 });
  // An older file keeps its mode.
  await chmod(file, 0o600);
  return file;
}

/**
 * Uses no configuration file except the one with the password, so that the configuration of the system's own Redis does
 * not apply. Snapshots are off, because the AOF has everything.
 */
export function serverArguments(port: number, dataDir: string, more: Record<string, string> = {}): string[] {
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir: dataDir,
    daemonize: 'no',
    appendonly: 'yes',
    appendfsync: 'everysec',
    // Each time the AOF has doubled, a child rewrites it: a tenth of the server's time, nearly half of it for
    // compression.
    rdbcompression: 'no',
    // With Redis's default of 64 MB, a busy hour would rewrite it every few seconds.
    'auto-aof-rewrite-min-size': '256mb',
    // Up to this many members, a sorted set is a list that is searched from its start: with 30 requests under way, that
    // takes several times as long. All versions know the name from before 7.0.
    'zset-max-ziplist-entries': '8',
    save: '',
    'maxmemory-policy': 'noeviction',
    // Half of the memory that there is: beyond it requests are refused, before the machine ends the server.
    maxmemory: String(Math.floor(Math.min(totalmem(), process.constrainedMemory() || Infinity) / 2)),
    ...more,
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Connects for as long as `use` takes. Rejects with one sentence where no Redis answers. */
export async function withRedis(
  url: string,
  use: (client: ReturnType<typeof createRedis>) => Promise<unknown>,
  timeoutMs?: number,
): Promise<void> {
  const client = createRedis(url, 'producer');
  // `connectRedis` reports the reason in its own error.
  client.on('error', () => undefined);
  try {
    await connectRedis(client, timeoutMs);
    await use(client);
  } finally {
    client.disconnect();
  }
}

/** Rejects unless a Redis at `url` can be used. */
export async function ping(url: string): Promise<void> {
  // Histograms of command times cost a twentieth of the server's time, and nobody reads them. Servers before 7.0 have
  // none, and are refused later with a message.
  const tune: Parameters<typeof withRedis>[1] = (client) =>
    client.config('SET', 'latency-tracking', 'no').catch(() => undefined);
  await withRedis(url, tune, PING_TIMEOUT_MS);
}
