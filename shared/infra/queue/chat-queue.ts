import type { Queue } from 'bullmq';

import type { ChatJob, QueueName } from '../../contracts/jobs.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { openQueue } from './open-queue.ts';
import type { JobQueue } from './open-queue.ts';

/** One BullMQ queue for each name and shard; its keys carry the shard's hash tag. */
export interface ChatQueues {
  /** For those who watch it. Jobs of requests are added with their admission, see bullmq-layout.ts. */
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
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}
