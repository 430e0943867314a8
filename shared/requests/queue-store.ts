import { BATCH_LIMITS } from '../contracts/batches.ts';
import type { Principal } from '../domain/principal.ts';
import { ServiceError, toRetrySeconds } from '../errors/service-error.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineTimedScript } from '../redis/scripts.ts';

/** finish.lua samples how fast a queue drains. */
export type QueueStatistics = ReturnType<typeof createQueueStatistics>;

const LATELY_MS = 60_000;
const SAMPLE = 2_000;
const LARGEST = 10;

export function createQueueStatistics(client: RedisClient, keyspace: Keyspace) {
  return {
    /** Most first; estimated from a sample if very many wait. */
    async largestWaiting(shard: number, queue: string): Promise<{ tenantId: string; waiting: number }[]> {
      const keys = keyspace.shard(shard);
      const [all, ids] = await Promise.all([
        client.zcard(keys.prioritized(queue)),
        client.zrandmember(keys.prioritized(queue), SAMPLE),
      ]);
      const tenants = await Promise.all(ids.map((requestId) => client.hget(keys.record(requestId), 'tenant')));
      const counts = new Map<string, number>();
      for (const tenantId of tenants) if (tenantId !== null) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1);
      const scale = all / Math.max(1, ids.length);
      return [...counts]
        .map(([tenantId, count]) => ({ tenantId, waiting: Math.round(count * scale) }))
        .sort((one, other) => other.waiting - one.waiting)
        .slice(0, LARGEST);
    },
    /** 0 when no request has ended within the last minute. */
    async drainRatePerSecond(shard: number, queue: string, now: number): Promise<number> {
      const [last, gapMs] = await client.hmget(
        keyspace.shard(shard).queueStatistics(queue),
        'since:queue',
        'gap:queue',
      );
      const gap = Number(gapMs ?? 0);
      if (gap <= 0 || now - Number(last ?? 0) > LATELY_MS) return 0;
      return Math.round((1_000 / gap) * 1_000) / 1_000;
    },
  };
}

/** `refused`: the caller was told that there is no batch. */
export type BatchState = 'running' | 'refused';

/** Reads the progress of sent lines, and keeps lines of ended batches out. */
export type BatchQueue = ReturnType<typeof createBatchQueue>;

/** Longer than a batch's life. */
const CLOSED_MS = 2 * BATCH_LIMITS.lifeMs;
/** A refused batch must not run when MongoDB is back; questions about a running one come within minutes. */
const DECIDED_MS: Record<BatchState, number> = { running: 3_600_000, refused: CLOSED_MS };

export function createBatchQueue(client: RedisClient, keyspace: Keyspace) {
  const takeMs = defineTimedScript(client, 'take-writing');
  /** Takes this much of the minute in which a tenant's uploads may write. Returns how long the next one has to wait. */
  async function takeWriting(shard: number, tenantId: string, ms: number): Promise<number> {
    return Number(await takeMs([keyspace.shard(shard).writing(tenantId)], [Math.ceil(ms)]));
  }

  return {
    async states(shard: number, requestIds: readonly string[]): Promise<(string | undefined)[]> {
      const { record } = keyspace.shard(shard);
      const states = await Promise.all(requestIds.map((requestId) => client.hget(record(requestId), 'state')));
      return states.map((state) => state ?? undefined);
    },
    /** Admits no further line of the batch. */
    async close(shard: number, batchId: string): Promise<void> {
      await client.set(keyspace.shard(shard).closedBatch(batchId), 1, 'PX', CLOSED_MS);
    },
    /** Says what becomes of a batch; the first call decides. Returns what holds; safe to repeat. */
    async decide(shard: number, batchId: string, state: BatchState): Promise<BatchState> {
      const key = keyspace.shard(shard).batchState(batchId);
      const decided = await client.set(key, state, 'PX', DECIDED_MS[state], 'NX', 'GET');
      return decided === 'running' || decided === 'refused' ? decided : state;
    },
    takeWriting,
    /** Takes the time in which this many bytes may be written. */
    takeWritten: (shard: number, tenantId: string, bytes: number): Promise<number> =>
      takeWriting(shard, tenantId, (bytes / BATCH_LIMITS.writtenBytesPerMinute) * 60_000),
    /** Throws `rpm_exceeded`. A begun upload may write all it has; the next one waits until that is made up. */
    async assertMayWrite({ shard, tenantId }: Principal): Promise<void> {
      const waitMs = await takeWriting(shard, tenantId, 0);
      if (waitMs <= 0) return;
      throw new ServiceError(
        'rpm_exceeded',
        `The account's uploads have written their ${BATCH_LIMITS.writtenBytesPerMinute / 1024 ** 2} MiB a minute; wait as Retry-After says.`,
        { retryAfterSeconds: toRetrySeconds(waitMs) },
      );
    },
  };
}
