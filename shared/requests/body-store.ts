import type { QueueName } from '../contracts/jobs.ts';
import { storedChatJob } from '../queue/bullmq-layout.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace, ShardKeys } from '../redis/keyspace.ts';
import { defineScript } from '../redis/scripts.ts';

/** A process that ends a request after its deadline needs the body to know what to charge. */
const MARGIN_MS = 24 * 3_600_000;

export function bodyLifeMs(requestTimeoutMs: number): number {
  return requestTimeoutMs + MARGIN_MS;
}

/** For the order of waiting, see docs/decisions/0004-fair-queueing.md. */
export type QueueOrderStore = ReturnType<typeof createQueueOrderStore>;

type QueuedRequest = Record<'requestId' | 'tenantId' | 'body', string>;

/** enqueue.lua and requeue.lua begin with these keys and arguments. */
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
    /** For an admission without its body. Returns the found state; only `accepted` is queued. Safe to repeat. */
    enqueue: async (shard: number, queue: QueueName, request: QueuedRequest): Promise<string> =>
      String(await add(...toQueueCall(keyspace.shard(shard), queue, request, requestTimeoutMs))),
  };
}
