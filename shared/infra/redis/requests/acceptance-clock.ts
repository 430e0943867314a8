import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';

/** Reads the present moment as a place in a shard's order of acceptance. */
export interface AcceptanceClock {
  /** By the shard's clock, in microseconds: requests accepted before have a lower `seq`, later ones a higher one. */
  read(shard: number): Promise<number>;
}

export function createAcceptanceClock(client: RedisClient, keyspace: Keyspace): AcceptanceClock {
  const readNow = defineScript(client, 'now', ['window']);
  return {
    read: async (shard) => Number(await readNow([keyspace.shard(shard).inflight], [])),
  };
}
