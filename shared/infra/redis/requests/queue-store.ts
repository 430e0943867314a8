import { BATCH_LIMITS } from '../../../contracts/batches.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/** Reads how fast a queue drains, as finish.lua samples it. */
export interface QueueStatistics {
  /** Requests a second; 0 when none has ended within the last minute. */
  drainRatePerSecond(shard: number, queue: string, now: number): Promise<number>;
}

const LATELY_MS = 60_000;

export function createQueueStatistics(client: RedisClient, keyspace: Keyspace): QueueStatistics {
  return {
    async drainRatePerSecond(shard, queue, now) {
      const [last, gapMs] = await client.hmget(keyspace.shard(shard).queueStatistics(queue), 'last', 'gap');
      const gap = Number(gapMs ?? 0);
      if (gap <= 0 || now - Number(last ?? 0) > LATELY_MS) return 0;
      return Math.round((1_000 / gap) * 1_000) / 1_000;
    },
  };
}

/** Reads how many batch jobs wait and how far the sent lines have come, and keeps lines of ended batches out. */
export interface BatchQueue {
  /** Jobs that no worker has taken yet. */
  waiting(shard: number): Promise<number>;
  /** The state of each request's record; undefined: Redis has none. */
  states(shard: number, requestIds: readonly string[]): Promise<(string | undefined)[]>;
  /** From then on no line of the batch is admitted. */
  close(shard: number, batchId: string): Promise<void>;
}

/** Longer than a batch has. */
const CLOSED_MS = 2 * BATCH_LIMITS.lifeMs;

export function createBatchQueue(client: RedisClient, keyspace: Keyspace): BatchQueue {
  return {
    async waiting(shard) {
      const keys = keyspace.shard(shard);
      const counts = await Promise.all([client.llen(keys.waiting('batch')), client.zcard(keys.line('batch'))]);
      return counts[0] + counts[1];
    },
    async states(shard, requestIds) {
      const { record } = keyspace.shard(shard);
      const states = await Promise.all(requestIds.map((requestId) => client.hget(record(requestId), 'state')));
      return states.map((state) => state ?? undefined);
    },
    async close(shard, batchId) {
      await client.set(keyspace.shard(shard).closedBatch(batchId), 1, 'PX', CLOSED_MS);
    },
  };
}
