import type { BullMQAdapter } from '@bull-board/api/bullMQAdapter';

/** A BullMQ queue, named without importing bullmq, whose door is shared/infra/queue. */
export type LaneQueue = ConstructorParameters<typeof BullMQAdapter>[0];

/** The shard whose hash tag is the queue's prefix (see shared/infra/redis/keyspace.ts). */
export function shardOfQueue(queue: LaneQueue): number {
  return Number(/-(\d+)\}$/.exec(queue.opts.prefix ?? '')?.[1] ?? 0);
}
