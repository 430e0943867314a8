import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/** How fast lanes drain, as finish.lua samples it. */
export interface LaneStatistics {
  /** Requests a second that the lane ended lately; 0 when none has ended within the last minute. */
  drainRatePerSecond(shard: number, lane: string, now: number): Promise<number>;
}

const LATELY_MS = 60_000;

export function createLaneStatistics(client: RedisClient, keyspace: Keyspace): LaneStatistics {
  return {
    async drainRatePerSecond(shard, lane, now) {
      const [last, gapMs] = await client.hmget(keyspace.shard(shard).laneStatistics(lane), 'last', 'gap');
      const gap = Number(gapMs ?? 0);
      if (gap <= 0 || now - Number(last ?? 0) > LATELY_MS) return 0;
      return Math.round((1_000 / gap) * 1_000) / 1_000;
    },
  };
}
