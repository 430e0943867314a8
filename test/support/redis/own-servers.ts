import { startRedis } from '../../../scripts/embedded/redis.ts';
import { makeFolder } from '../temporary-folder.ts';
import { startRedisCluster } from './redis-cluster.ts';
import type { ClusterOptions } from './redis-cluster.ts';
import { startNode } from './redis-nodes.ts';
import type { NodeAccess } from './redis-nodes.ts';
import { startSentinels } from './redis-sentinel.ts';
import type { SentinelOptions } from './redis-sentinel.ts';

/** Servers with a folder of their own, which goes with them. For `useStarted`. */
async function inFolder<T extends object>(
  start: (dataDir: string) => Promise<T>,
  stop: (started: T) => Promise<unknown>,
) {
  const { path: dataDir, remove } = await makeFolder();
  const started = await start(dataDir);
  return {
    ...started,
    dataDir,
    async close() {
      await stop(started);
      await remove();
    },
  };
}

export const openOwnRedis = () =>
  inFolder(
    (dataDir) => startRedis({ dataDir, log: () => undefined }),
    (redis) => redis.stop(),
  );

export const openOwnNode = (access: NodeAccess = {}) =>
  inFolder(
    (dataDir) => startNode('node', { dataDir, ...access }, () => ({})),
    (node) => node.process().stop(),
  );

export const openOwnCluster = (options: Omit<ClusterOptions, 'dataDir'> = {}) =>
  inFolder(
    (dataDir) => startRedisCluster({ dataDir, ...options }),
    (cluster) => cluster.stop(),
  );

export const openOwnSentinels = (options: Omit<SentinelOptions, 'dataDir'>) =>
  inFolder(
    (dataDir) => startSentinels({ dataDir, ...options }),
    (group) => group.stop(),
  );
