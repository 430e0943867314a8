import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { startRedisCluster } from '../../support/redis/redis-cluster.ts';
import type { RedisNode } from '../../support/redis/redis-nodes.ts';
import { startSentinels } from '../../support/redis/redis-sentinel.ts';
import { toVictim } from './victim.ts';
import type { Victim } from './victim.ts';
import type { VictimStoreOptions } from './victim-stores.ts';

/** Several Redis servers of which one may be lost. */
export interface RedisGroup {
  url: string;
  /** SIGKILL for the server that has a shard. Returns its name. */
  killMaster(shard: number): Promise<string>;
  /** SIGSTOP for it: its connections stay open, and nobody answers. */
  pauseMaster(shard: number): Promise<string>;
  /** A replica takes over in order; resolves when every replica has all that its master has. */
  failOver(shard: number): Promise<void>;
  /** Of a cluster: another master takes over the keys of a shard, a few at a time. */
  moveShard(shard: number): Promise<void>;
  /** Brings back what was killed or paused. */
  restore(): Promise<void>;
  stop(): Promise<void>;
}

interface Group {
  url: string;
  nodes: RedisNode[];
  masterOf(shard: number): Promise<RedisNode>;
  failOver(shard: number): Promise<void>;
  moveShard(shard: number): Promise<void>;
  stop(): Promise<void>;
}

/** The kind of servers an experiment runs on. */
export type RedisGroupKind = 'cluster' | 'sentinel';

async function startGroup(kind: RedisGroupKind, options: VictimStoreOptions): Promise<Group> {
  if (kind === 'sentinel') {
    const group = await startSentinels(options);
    return {
      ...group,
      masterOf: group.master,
      async failOver() {
        await group.failOver();
        await group.untilReplicated();
      },
      moveShard: () => Promise.reject(new Error('Under Sentinel all shards are on one master.')),
    };
  }
  const cluster = await startRedisCluster(options);
  const tagOf = (shard: number) => createKeyspace().shard(shard).tag;
  return {
    ...cluster,
    masterOf: (shard) => cluster.masterOf(tagOf(shard)),
    failOver: (shard) => cluster.promoteReplicaOf(tagOf(shard)),
    moveShard: (shard) => cluster.moveSlotOf(tagOf(shard), { keysAtOnce: 5, pauseMs: 5 }),
  };
}

export async function openRedisGroup(kind: RedisGroupKind, options: VictimStoreOptions): Promise<RedisGroup> {
  const { exits } = options;
  const group = await startGroup(kind, options);
  const watched = new Map<RedisNode, Victim>();
  let starts = 0;
  const watch = (node: RedisNode) => {
    starts += 1;
    watched.set(node, toVictim(`${node.name}-${starts}`, node.process(), exits));
  };
  group.nodes.forEach(watch);
  const victimOf = async (shard: number): Promise<Victim> => {
    const victim = watched.get(await group.masterOf(shard));
    if (victim === undefined) throw new Error(`Nobody has shard ${shard}.`);
    return victim;
  };

  return {
    url: group.url,
    async killMaster(shard) {
      const victim = await victimOf(shard);
      await victim.kill();
      return victim.name;
    },
    async pauseMaster(shard) {
      const victim = await victimOf(shard);
      victim.pause();
      return victim.name;
    },
    failOver: group.failOver,
    moveShard: group.moveShard,
    async restore() {
      for (const [node, victim] of watched) {
        victim.resume();
        if (victim.isRunning()) continue;
        await node.restart();
        watch(node);
      }
    },
    async stop() {
      const running = [...watched.values()].filter((victim) => victim.isRunning());
      // Their data is thrown away.
      await Promise.all(running.map((victim) => victim.kill()));
      await group.stop();
    },
  };
}

/** For experiments on one server: whoever asks for a group there is wrong. */
export function noGroup(url: string): RedisGroup {
  const refuse = () => Promise.reject(new Error('This experiment has one Redis.'));
  return {
    url,
    killMaster: refuse,
    pauseMaster: refuse,
    failOver: refuse,
    moveShard: refuse,
    restore: refuse,
    stop: () => Promise.resolve(),
  };
}

/** And the other way round. */
export function noStore(url: string) {
  const refuse = () => {
    throw new Error('This experiment has a group of Redis servers.');
  };
  return { url, current: refuse, restart: refuse, stop: () => Promise.resolve() };
}
