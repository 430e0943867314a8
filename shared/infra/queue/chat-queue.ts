import type { Queue } from 'bullmq';

import type { ChatJob, QueueName } from '../../contracts/jobs.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { openQueue } from './open-queue.ts';
import type { JobQueue } from './open-queue.ts';

/** One BullMQ queue for each name and shard; its keys carry the shard's hash tag. */
export interface ChatQueues {
  /** Adds the job of an admitted request; its id is the request id, so a second add while it exists does nothing. */
  add(shard: number, name: QueueName, requestId: string, job: ChatJob): Promise<void>;
  /** Every queue opened so far, for those who watch them. */
  queue(shard: number, name: QueueName): Queue<ChatJob>;
  close(): Promise<void>;
}

/** `client` must be ready: a queue on one that is not ends the process (docs/architecture/facts.md section 5). */
export function createChatQueues(client: RedisClient, keyspace: Keyspace, onError: (error: Error) => void): ChatQueues {
  const queues = new Map<string, JobQueue<QueueName>>();

  function open(shard: number, name: QueueName): JobQueue<QueueName> {
    const { tag: prefix } = keyspace.shard(shard);
    const id = `${prefix}:${name}`;
    const found = queues.get(id) ?? openQueue(name, { client, prefix, onError });
    queues.set(id, found);
    return found;
  }

  return {
    queue: (shard, name) => open(shard, name).queue,
    add: (shard, name, requestId, job) => open(shard, name).add(requestId, job),
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}
