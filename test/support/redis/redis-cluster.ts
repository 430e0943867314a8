import { setTimeout as pause } from 'node:timers/promises';

import { freePort } from '../../../scripts/embedded/ports.ts';
import { startNode, until, untilReplicated, urlOf, withClient } from './redis-nodes.ts';
import type { GroupOptions, RedisNode } from './redis-nodes.ts';

const SLOTS = 16_384;
const MASTERS = 3;

export interface ClusterOptions extends GroupOptions {
  /** Replicas of each master; default: 1. */
  replicas?: number;
  /** How long a master may be silent before its replica takes over; default: 2 s. */
  nodeTimeoutMs?: number;
}

export interface RedisCluster {
  url: string;
  /** The initial masters, then their replicas in the same order. */
  nodes: RedisNode[];
  /** The server that holds the slot of a key. */
  masterOf(key: string): Promise<RedisNode>;
  /** A planned fail-over: the replica takes over, and the master becomes a replica. */
  promoteReplicaOf(key: string): Promise<void>;
  /** Moves the slot of a key to another master, some keys at a time, while clients use it. */
  moveSlotOf(key: string, options?: { keysAtOnce?: number; pauseMs?: number }): Promise<void>;
  stop(): Promise<void>;
}

/** Starts three masters and their replicas on this machine, using only `redis-server`. */
export async function startRedisCluster({
  replicas = 1,
  nodeTimeoutMs = 2_000,
  ...options
}: ClusterOptions): Promise<RedisCluster> {
  const nodes: RedisNode[] = [];
  const busPorts = new Map<RedisNode, string>();
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.process().stop()));
  };

  async function startOne(index: number): Promise<void> {
    const busPort = String(await freePort());
    const node = await startNode(`cluster-${index}`, options, () => ({
      'cluster-enabled': 'yes',
      'cluster-config-file': 'nodes.conf',
      'cluster-node-timeout': String(nodeTimeoutMs),
      // The default bus port would be out of range for most free ports.
      'cluster-port': busPort,
      // The other masters' slots stay in service while a master is replaced.
      'cluster-require-full-coverage': 'no',
      'repl-diskless-sync-delay': '0',
      ...(options.tls === undefined ? {} : { 'tls-cluster': 'yes' }),
    }));
    busPorts.set(node, busPort);
    nodes[index] = node;
  }

  const call = (node: RedisNode, ...args: string[]) =>
    withClient(node.url, (client) => client.call('CLUSTER', ...args));
  const masters = () => nodes.slice(0, MASTERS);

  async function form(): Promise<void> {
    const ids = await Promise.all(nodes.map(async (node) => String(await call(node, 'MYID'))));
    await Promise.all(
      masters().map(async (node, index) => {
        const [from, to] = [index, index + 1].map((part) => Math.floor((part * SLOTS) / MASTERS));
        await call(node, 'ADDSLOTSRANGE', String(from), String((to ?? SLOTS) - 1));
        await call(node, 'SET-CONFIG-EPOCH', String(index + 1));
      }),
    );
    const [first, ...others] = nodes;
    if (first === undefined) return;
    for (const node of others) await call(first, 'MEET', '127.0.0.1', String(node.port), busPorts.get(node) ?? '');
    await until(async () => {
      const known = await Promise.all(nodes.map(async (node) => String(await call(node, 'INFO'))));
      return known.every((info) => info.includes(`cluster_known_nodes:${nodes.length}`));
    }, 'every node to know the others');
    await Promise.all(nodes.slice(MASTERS).map((node, index) => call(node, 'REPLICATE', ids[index % MASTERS] ?? '')));
    await until(async () => {
      const states = await Promise.all(
        nodes.map((node) =>
          withClient(node.url, async (client) => ({
            cluster: String(await client.call('CLUSTER', 'INFO')),
            replication: await client.info('replication'),
          })),
        ),
      );
      return states.every(
        ({ cluster, replication }, index) =>
          cluster.includes('cluster_state:ok') && (index < MASTERS || replication.includes('master_link_status:up')),
      );
    }, 'the cluster to be whole');
  }

  async function rowOf(key: string): Promise<{ master: RedisNode; replicas: RedisNode[] }> {
    const alive = await firstThatRuns(nodes);
    const slot = Number(await call(alive, 'KEYSLOT', key));
    // The answer of CLUSTER SLOTS: from, to, then the master and its replicas.
    const ranges = (await call(alive, 'SLOTS')) as [number, number, ...[string, number][]][];
    const [, , ...servers] = ranges.find(([from, to]) => from <= slot && slot <= to) ?? [0, 0];
    const [master, ...others] = servers.flatMap(([, port]) => nodes.find((node) => node.port === port) ?? []);
    if (master === undefined) throw new Error(`No server has the slot of ${key}.`);
    return { master, replicas: others };
  }

  const cluster: RedisCluster = {
    url: '',
    nodes,
    masterOf: async (key) => (await rowOf(key)).master,
    async promoteReplicaOf(key) {
      let replica: RedisNode | undefined;
      // Which server replicates which spreads only by gossip.
      await until(async () => {
        [replica] = (await rowOf(key)).replicas;
        return replica !== undefined && String(await call(replica, 'FAILOVER')) === 'OK';
      }, `a replica of the master of ${key}`);
      await until(async () => (await rowOf(key)).master === replica, 'the replica to take over');
      if (replica !== undefined) await untilReplicated(replica, 1);
    },
    async moveSlotOf(key, { keysAtOnce = 10, pauseMs = 0 } = {}) {
      const { master: source } = await rowOf(key);
      const others: RedisNode[] = [];
      for (const node of nodes) {
        const role = await withClient(node.url, (client) => client.info('replication'));
        if (node !== source && role.includes('role:master')) others.push(node);
      }
      const [target] = others;
      if (target === undefined) throw new Error('The cluster has no other master.');
      const slot = String(await call(source, 'KEYSLOT', key));
      const [from, to] = [String(await call(source, 'MYID')), String(await call(target, 'MYID'))];
      await call(target, 'SETSLOT', slot, 'IMPORTING', from);
      await call(source, 'SETSLOT', slot, 'MIGRATING', to);
      const auth = options.password === undefined ? [] : ['AUTH', options.password];
      await withClient(source.url, async (client) => {
        for (;;) {
          // The answer of CLUSTER GETKEYSINSLOT.
          const keys = (await client.call('CLUSTER', 'GETKEYSINSLOT', slot, String(keysAtOnce))) as string[];
          if (keys.length === 0) return;
          await client.call('MIGRATE', '127.0.0.1', String(target.port), '', '0', '5000', ...auth, 'KEYS', ...keys);
          await pause(pauseMs);
        }
      });
      for (const node of [target, source, ...others]) await call(node, 'SETSLOT', slot, 'NODE', to);
    },
    stop,
  };
  try {
    await Promise.all(Array.from({ length: MASTERS * (1 + replicas) }, (_, index) => startOne(index)));
    await form();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...cluster,
    url: urlOf(
      'redis+cluster',
      masters()
        .map(({ port }) => `127.0.0.1:${port}`)
        .join(','),
      options,
    ),
  };
}

async function firstThatRuns(nodes: readonly RedisNode[]): Promise<RedisNode> {
  return Promise.any(nodes.map((node) => withClient(node.url, () => Promise.resolve(node))));
}
