import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';

/** Lets the holder of a lease do a task. Every task must stay right with two leaders for a moment. */
export type LeaderLease = ReturnType<typeof createLeaderLease>;

/** Its lease serves tasks that belong to no shard. */
export const FLEET_SHARD = 0;

const LEASE_MS = 5_000;

/** `mayLead` false: this process gives its leases up, for others who can do the tasks. */
export function createLeaderLease(client: RedisClient, keyspace: Keyspace, processId: string, mayLead = () => true) {
  const lead = defineScript(client, 'lead');
  async function ask(shard: number, task: string, kept: 'kept' | ''): Promise<boolean> {
    const leaseMs = mayLead() ? LEASE_MS : 0;
    return (await lead([keyspace.shard(shard).lease(task)], [processId, leaseMs, kept])) === 1 && leaseMs > 0;
  }
  return {
    /** True while this process leads `task` on the shard; renews with every call. */
    hold: (shard: number, task: string): Promise<boolean> => ask(shard, task, ''),
    /** False: the lease ran out meanwhile, so another process may have led. */
    renew: (shard: number, task: string): Promise<boolean> => ask(shard, task, 'kept'),
    /** Gives the lease or turn up, so that no process has to wait for its end. */
    async release(shard: number, task: string): Promise<void> {
      await lead([keyspace.shard(shard).lease(task)], [processId, 0, '']);
    },
    /** True for one call of all processes in `everyMs`, restarts or not. */
    async takeTurn(shard: number, task: string, everyMs: number): Promise<boolean> {
      return (await client.set(keyspace.shard(shard).lease(task), processId, 'PX', everyMs, 'NX')) === 'OK';
    },
  };
}
