import type { RedisClient } from './connection.ts';
import type { Keyspace } from './keyspace.ts';

/** Lets one process of many do a task: whoever holds the lease. Every task must stay right with two leaders for a moment. */
export interface LeaderLease {
  /** True while this process leads `task` on the shard; renews with every call. */
  hold(shard: number, task: string): Promise<boolean>;
  /** Gives the lease up, so that another process need not wait for its end. */
  release(shard: number, task: string): Promise<void>;
}

const LEASE_MS = 5_000;

export function createLeaderLease(client: RedisClient, keyspace: Keyspace, processId: string): LeaderLease {
  return {
    async hold(shard, task) {
      const key = keyspace.shard(shard).lease(task);
      if ((await client.set(key, processId, 'PX', LEASE_MS, 'NX')) === 'OK') return true;
      if ((await client.get(key)) !== processId) return false;
      return (await client.pexpire(key, LEASE_MS)) === 1;
    },
    async release(shard, task) {
      const key = keyspace.shard(shard).lease(task);
      if ((await client.get(key)) === processId) await client.del(key);
    },
  };
}
