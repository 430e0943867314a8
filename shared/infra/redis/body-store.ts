import type { RedisClient } from './connection.ts';
import type { Keyspace } from './keyspace.ts';

/** Request bodies while a request lives: the one place in Redis where conversation text waits (contract.md section 7). */
export interface BodyStore {
  put(shard: number, requestId: string, body: string): Promise<void>;
}

export function createBodyStore(client: RedisClient, keyspace: Keyspace, lifeMs: number): BodyStore {
  return {
    async put(shard, requestId, body) {
      await client.set(keyspace.shard(shard).body(requestId), body, 'PX', lifeMs);
    },
  };
}
