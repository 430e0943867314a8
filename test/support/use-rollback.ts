import { beforeAll } from '@jest/globals';

import { rollBackTo, snapshotOf } from './roll-back.ts';
import type { ServiceOptions } from './service.ts';
import { openTestRedis, redisUrl } from './stores.ts';
import { openTcpProxy } from './tcp-proxy.ts';
import { useService, useStarted } from './use-service.ts';

/** A service of one shard behind a proxy of its Redis, which can be taken back to what it had (see use-service.ts). */
export function useRollback(options: ServiceOptions = {}) {
  const proxy = useStarted('proxy', () => openTcpProxy(redisUrl()));
  /** Past the proxy. */
  const direct = useStarted('client', () => openTestRedis('worker'));
  const service = useService(() => ({ ...options, env: { REDIS_URL: proxy.url, QUEUE_SHARDS: '1', ...options.env } }));
  beforeAll(() => {
    service.redis.on('error', () => undefined);
  });
  const tag = () => service.keyspace.shard(0).tag;
  return {
    ...{ proxy, direct, service },
    snapshot: () => snapshotOf(direct, tag()),
    rollBack: (before: ReadonlyMap<string, Buffer>, first?: () => Promise<unknown>) =>
      rollBackTo(before, { redis: direct, tag: tag(), proxy }, first),
  };
}
