import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/** What Redis knows of the lines that batches have sent. */
export interface BatchLane {
  /** Jobs that nobody has taken yet. */
  waiting(shard: number): Promise<number>;
  /** For each request the state of its record; undefined: Redis has none. */
  states(shard: number, requestIds: readonly string[]): Promise<(string | undefined)[]>;
}

export function createBatchLane(client: RedisClient, keyspace: Keyspace): BatchLane {
  return {
    waiting: (shard) => client.llen(keyspace.shard(shard).waiting('batch')),
    async states(shard, requestIds) {
      const { record } = keyspace.shard(shard);
      const states = await Promise.all(requestIds.map((requestId) => client.hget(record(requestId), 'state')));
      return states.map((state) => state ?? undefined);
    },
  };
}
