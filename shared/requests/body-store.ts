import type { QueueName } from '../contracts/jobs.ts';
import { storedChatJob } from '../queue/bullmq-layout.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace, ShardKeys } from '../redis/keyspace.ts';
import { defineScript } from '../redis/scripts.ts';

/** How long a body may outlive its deadline: a process that ends the request late needs it to know what to charge. */
const MARGIN_MS = 24 * 3_600_000;

/** The longest time for which a request's body is kept; milliseconds. */
export function bodyLifeMs(requestTimeoutMs: number): number {
  return requestTimeoutMs + MARGIN_MS;
}

/** The order in which the requests of a queue wait for a worker (docs/decisions/0004-fair-queueing.md). */
export type QueueOrderStore = ReturnType<typeof createQueueOrderStore>;

type QueuedRequest = Record<'requestId' | 'tenantId' | 'body', string>;

/** The keys and arguments with which enqueue.lua and requeue.lua begin. */
export function toQueueCall(
  keys: ShardKeys,
  queue: QueueName,
  { requestId, tenantId, body }: QueuedRequest,
  requestTimeoutMs: number,
): [keys: string[], args: (string | number)[]] {
  const { name, data, opts } = storedChatJob(queue, requestId, { tenantId });
  return [
    [
      keys.record(requestId),
      keys.body(requestId),
      keys.job(queue, requestId),
      keys.prioritized(queue),
      keys.marker(queue),
      keys.queueMeta(queue),
    ],
    [requestId, body, bodyLifeMs(requestTimeoutMs), name, data, opts],
  ];
}

export function createQueueOrderStore(client: RedisClient, keyspace: Keyspace, requestTimeoutMs: number) {
  const add = defineScript(client, 'enqueue');
  return {
    /**
     * Queues a request that was admitted without its body. Returns the state in which it was found; only `accepted` is
     * queued. Safe to repeat.
     */
    enqueue: async (shard: number, queue: QueueName, request: QueuedRequest): Promise<string> =>
      String(await add(...toQueueCall(keyspace.shard(shard), queue, request, requestTimeoutMs))),
  };
}
