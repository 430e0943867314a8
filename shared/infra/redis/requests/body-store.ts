import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/**
 * Request bodies while a request lives: the one place in Redis where conversation text waits
 * (docs/spec/contract.md section 7).
 */
export interface BodyStore {
  put(shard: number, requestId: string, body: string): Promise<void>;
}

/** How long a body may outlive its deadline: whoever ends the request late must still know what to charge. */
const MARGIN_MS = 24 * 3_600_000;

export function createBodyStore(client: RedisClient, keyspace: Keyspace, requestTimeoutMs: number): BodyStore {
  return {
    async put(shard, requestId, body) {
      await client.set(keyspace.shard(shard).body(requestId), body, 'PX', requestTimeoutMs + MARGIN_MS);
    },
  };
}
