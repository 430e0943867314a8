import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { connectRedis, createRedis } from '../../../shared/redis/connection.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import { freePort } from '../../../scripts/embedded/ports.ts';
import { findRedisServer, ping, serverArguments } from '../../../scripts/embedded/redis.ts';
import { startServer } from '../../../scripts/embedded/server-process.ts';
import type { ServerProcess } from '../../../scripts/embedded/server-process.ts';

/** How to reach the servers of a group. */
export interface NodeAccess {
  password?: string | undefined;
  /**
   * PEM files. Clients have to trust `ca` (tls.setDefaultCACertificates or NODE_EXTRA_CA_CERTS). `isMutual`: clients
   * have to present a certificate as well, and addresses name the files.
   */
  tls?: { cert: string; key: string; ca: string; isMutual?: boolean } | undefined;
}

export interface GroupOptions extends NodeAccess {
  dataDir: string;
  signal?: AbortSignal | undefined;
}

/** One server of a cluster, or of a master and its replicas. */
export interface RedisNode {
  name: string;
  port: number;
  url: string;
  /** The currently running process. */
  process(): ServerProcess;
  /** Restarts the server with the same data, at the same address. */
  restart(): Promise<void>;
}

const READY_MS = 20_000;
const STOP_MS = 5_000;
const POLL_MS = 50;
const FORMED_MS = 20_000;

export function urlOf(scheme: string, addresses: string, { password, tls }: NodeAccess, path = ''): string {
  const auth = password === undefined ? '' : `:${encodeURIComponent(password)}@`;
  const files = tls?.isMutual === true ? { tls_ca: tls.ca, tls_cert: tls.cert, tls_key: tls.key } : undefined;
  const query = files === undefined ? '' : `?${new URLSearchParams(files).toString()}`;
  return `${tls === undefined ? scheme : scheme.replace('redis', 'rediss')}://${auth}${addresses}${path}${query}`;
}

/** The settings that let a server, its replicas and its clients reach each other as `access` says. */
function accessSettings(port: number, { password, tls }: NodeAccess): Record<string, string> {
  return {
    ...(password === undefined ? {} : { requirepass: password, masterauth: password }),
    ...(tls === undefined
      ? {}
      : {
          port: '0',
          'tls-port': String(port),
          'tls-cert-file': tls.cert,
          'tls-key-file': tls.key,
          'tls-ca-cert-file': tls.ca,
          'tls-auth-clients': tls.isMutual === true ? 'yes' : 'no',
          'tls-replication': 'yes',
        }),
  };
}

/** Starts a `redis-server` that keeps its address; `settings` are those of redis.conf. */
export async function startNode(
  name: string,
  options: GroupOptions,
  settings: (port: number) => Promise<Record<string, string>> | Record<string, string>,
): Promise<RedisNode> {
  const { signal } = options;
  const command = await findRedisServer({ log: () => undefined, signal });
  const dataDir = join(options.dataDir, name);
  await mkdir(dataDir, { recursive: true });
  const port = await freePort();
  const url = urlOf('redis', `127.0.0.1:${port}`, options);
  const more = { ...accessSettings(port, options), ...(await settings(port)) };
  const start = () =>
    startServer({
      name,
      command,
      args: serverArguments(port, dataDir, more),
      cwd: dataDir,
      lockFile: join(dataDir, 'server.lock'),
      ready: () => ping(url),
      readyTimeoutMs: READY_MS,
      stopTimeoutMs: STOP_MS,
      signal,
    });
  let running = await start();
  return {
    name,
    port,
    url,
    process: () => running,
    async restart() {
      running = await start();
    },
  };
}

/** Runs `task` with a client that is connected to this server only. */
export async function withClient<Result>(url: string, task: (client: RedisClient) => Promise<Result>): Promise<Result> {
  const client = createRedis(url, 'worker');
  client.on('error', () => undefined);
  await connectRedis(client);
  try {
    return await task(client);
  } finally {
    client.disconnect();
  }
}

/** Waits for servers to agree; throws with `what` if they do not. */
export async function until(check: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + FORMED_MS;
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`Waited in vain for ${what}.`);
    await pause(POLL_MS);
  }
}

/** Waits until a master's replicas have all of its data; before that, its death would lose some. */
export async function untilReplicated(master: RedisNode, replicas: number): Promise<void> {
  await until(async () => {
    const info = await withClient(master.url, (client) => client.info('replication'));
    return info.split('state=online').length > replicas;
  }, `the replicas of ${master.name}`);
}
