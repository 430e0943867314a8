import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/** What each shard's last reconciliation left wrong, by part, for whoever asks another process. */
export interface LastDrift {
  keep(shard: number, drift: Readonly<Record<string, number>>): Promise<void>;
  /** Undefined: the shard has not been reconciled yet. */
  read(shard: number): Promise<Record<string, number> | undefined>;
}

export function createLastDrift(client: RedisClient, keyspace: Keyspace): LastDrift {
  return {
    async keep(shard, drift) {
      const parts = Object.entries(drift).flat();
      if (parts.length > 0) await client.hset(keyspace.shard(shard).drift, ...parts);
    },
    async read(shard) {
      const parts = Object.entries(await client.hgetall(keyspace.shard(shard).drift));
      return parts.length === 0 ? undefined : Object.fromEntries(parts.map(([part, amount]) => [part, Number(amount)]));
    },
  };
}
