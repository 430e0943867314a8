import type { QueueName } from '../contracts/jobs.ts';
import { storedChatJob } from '../queue/bullmq-layout.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
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

export function createQueueOrderStore(client: RedisClient, keyspace: Keyspace, requestTimeoutMs: number) {
  const add = defineScript(client, 'enqueue');
  return {
    /**
     * Queues a request that was admitted without its body. Returns the state in which it was found; only `accepted` is
     * queued. Safe to repeat.
     */
    async enqueue(shard: number, queue: QueueName, { requestId, tenantId, body }: QueuedRequest): Promise<string> {
      const keys = keyspace.shard(shard);
      const { name, data, opts } = storedChatJob(queue, requestId, { tenantId });
      const life = bodyLifeMs(requestTimeoutMs);
      const state = await add(
        [
          keys.record(requestId),
          keys.body(requestId),
          keys.job(queue, requestId),
          keys.prioritized(queue),
          keys.marker(queue),
          keys.queueMeta(queue),
        ],
        [requestId, body, life, name, data, opts],
      );
      return String(state);
    },
  };
}
