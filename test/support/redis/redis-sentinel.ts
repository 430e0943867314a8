import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { freePort } from '../../../scripts/embedded/ports.ts';
import { findRedisServer, ping } from '../../../scripts/embedded/redis.ts';
import { startServer } from '../../../scripts/embedded/server-process.ts';
import type { ServerProcess } from '../../../scripts/embedded/server-process.ts';
import { startNode, until, untilReplicated, urlOf, withClient } from './redis-nodes.ts';
import type { GroupOptions, RedisNode } from './redis-nodes.ts';

const NAME = 'parley';
const SENTINELS = 3;
const READY_MS = 20_000;
const STOP_MS = 5_000;

export interface SentinelOptions extends GroupOptions {
  /** Default: 2. */
  replicas?: number;
  /** The password of the sentinels themselves. */
  sentinelPassword?: string;
  /** How long the master may be silent before a replica takes over; default: 2 s. */
  downAfterMs?: number;
}

export interface SentinelGroup {
  url: string;
  nodes: RedisNode[];
  /** The server that the sentinels call the master. */
  master(): Promise<RedisNode>;
  /** A planned fail-over, led by the sentinels. */
  failOver(): Promise<void>;
  /** Waits until the replicas have all of the master's data; before that, its death would lose some. */
  untilReplicated(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a master, its replicas and three sentinels on this machine, using only `redis-server`. */
export async function startSentinels({
  replicas = 2,
  downAfterMs = 2_000,
  ...options
}: SentinelOptions): Promise<SentinelGroup> {
  const nodes: RedisNode[] = [];
  const sentinels: { url: string; process: ServerProcess; port: number }[] = [];
  const stop = async () => {
    await Promise.all(sentinels.map(({ process }) => process.stop()));
    await Promise.all(nodes.map((node) => node.process().stop()));
  };

  const own = {
    'repl-diskless-sync-delay': '0',
    'replica-announce-ip': '127.0.0.1',
    // As docs/guide/operating.md recommends: after a fail-over, writes are refused until a replica follows the new
    // master.
    ...(replicas > 1 ? { 'min-replicas-to-write': '1', 'min-replicas-max-lag': '10' } : {}),
  };
  async function startReplica(index: number, masterPort: number): Promise<void> {
    nodes[index] = await startNode(`replica-${index}`, options, () => ({
      ...own,
      replicaof: `127.0.0.1 ${masterPort}`,
    }));
  }

  const ask = (...args: string[]) =>
    Promise.any(sentinels.map(({ url }) => withClient(url, (client) => client.call('SENTINEL', ...args))));

  async function master(): Promise<RedisNode> {
    const [, port] = (await ask('GET-MASTER-ADDR-BY-NAME', NAME)) as [string, string];
    const node = nodes.find((candidate) => candidate.port === Number(port));
    if (node === undefined) throw new Error('The sentinels know no master.');
    return node;
  }

  try {
    const first = await startNode('replica-0', options, () => own);
    nodes[0] = first;
    await Promise.all(Array.from({ length: replicas }, (_, index) => startReplica(index + 1, first.port)));
    for (let index = 0; index < SENTINELS; index += 1)
      sentinels.push(await startSentinel(index, first.port, downAfterMs, options));
    await until(async () => {
      const rows = await Promise.all(sentinels.map(({ url }) => withClient(url, (client) => client.info('sentinel'))));
      return rows.every((row) => row.includes(`slaves=${replicas},sentinels=${SENTINELS}`));
    }, 'the sentinels to know each other and the replicas');
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: urlOf('redis+sentinel', sentinels.map(({ port }) => `127.0.0.1:${port}`).join(','), options, `/${NAME}`),
    nodes,
    master,
    async failOver() {
      const before = await master();
      await ask('FAILOVER', NAME);
      await until(async () => (await master()) !== before, 'the sentinels to name another master');
    },
    async untilReplicated() {
      await untilReplicated(await master(), nodes.length - 1);
    },
    stop,
  };
}

/** Sentinels store their state in their configuration file, so each needs its own. */
async function startSentinel(index: number, masterPort: number, downAfterMs: number, options: SentinelOptions) {
  const { password, sentinelPassword, tls, signal } = options;
  const name = `sentinel-${index}`;
  const dataDir = join(options.dataDir, name);
  await mkdir(dataDir, { recursive: true });
  const port = await freePort();
  const lines = [
    ...(tls === undefined
      ? [`port ${port}`]
      : [
          ...['port 0', `tls-port ${port}`, 'tls-replication yes'],
          `tls-auth-clients ${tls.isMutual === true ? 'yes' : 'no'}`,
          ...[`tls-cert-file ${tls.cert}`, `tls-key-file ${tls.key}`, `tls-ca-cert-file ${tls.ca}`],
        ]),
    ...['bind 127.0.0.1', `dir ${dataDir}`, 'sentinel announce-ip 127.0.0.1'],
    `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
    `sentinel failover-timeout ${NAME} 3000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${NAME} "${password}"`]),
    ...(sentinelPassword === undefined
      ? []
      : [`requirepass "${sentinelPassword}"`, `sentinel sentinel-pass "${sentinelPassword}"`]),
  ];
  const file = join(dataDir, 'sentinel.conf');
  await writeFile(file, `${lines.join('\n')}\n`);
  const url = urlOf('redis', `127.0.0.1:${port}`, { tls, password: sentinelPassword });
  const process = await startServer({
    name,
    command: await findRedisServer({ log: () => undefined, signal }),
    args: [file, '--sentinel'],
    cwd: dataDir,
    ready: () => ping(url),
    readyTimeoutMs: READY_MS,
    stopTimeoutMs: STOP_MS,
    signal,
  });
  return { url, process, port };
}
