import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';

/** Tells where this moment stands in a shard's order of acceptance. */
export interface AcceptanceClock {
  /** Every request that was accepted before has a lower `seq`, every later one a higher; microseconds. */
  read(shard: number): Promise<number>;
}

export function createAcceptanceClock(client: RedisClient, keyspace: Keyspace): AcceptanceClock {
  const readNow = defineScript(client, 'now', ['window']);
  return {
    read: async (shard) => Number(await readNow([keyspace.shard(shard).inflight], [])),
  };
}
