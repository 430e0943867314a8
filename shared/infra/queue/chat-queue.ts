import { Queue } from 'bullmq';

import type { ChatJob, QueueName } from '../../contracts/jobs.ts';
import { QUEUES } from '../../contracts/jobs.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';

/** One BullMQ queue per lane and shard; its keys carry the shard's hash tag. */
export interface ChatQueues {
  /** Adds the job of an admitted request; its id is the request id, so a second add while it exists does nothing. */
  add(shard: number, name: QueueName, requestId: string, job: ChatJob): Promise<void>;
  /** Every queue opened so far, for those who watch them. */
  queue(shard: number, name: QueueName): Queue<ChatJob>;
  close(): Promise<void>;
}

/** Events older than this are of no use: nobody waits on them (docs/architecture/facts.md section 3, the relay). */
const EVENTS_KEPT = 100;

/** `client` must be ready: a queue on one that is not ends the process (docs/architecture/facts.md section 5). */
export function createChatQueues(client: RedisClient, keyspace: Keyspace, onError: (error: Error) => void): ChatQueues {
  const queues = new Map<string, Queue<ChatJob>>();

  function queue(shard: number, name: QueueName): Queue<ChatJob> {
    const { tag } = keyspace.shard(shard);
    const id = `${tag}:${name}`;
    let found = queues.get(id);
    if (found === undefined) {
      found = new Queue<ChatJob>(name, {
        connection: client,
        prefix: tag,
        streams: { events: { maxLen: EVENTS_KEPT } },
      });
      found.on('error', onError);
      queues.set(id, found);
    }
    return found;
  }

  return {
    queue,
    async add(shard, name, requestId, job) {
      const { attempts, removeOnComplete, removeOnFail } = QUEUES[name];
      await queue(shard, name).add('chat', job, { jobId: requestId, attempts, removeOnComplete, removeOnFail });
    },
    async close() {
      await Promise.all([...queues.values()].map((open) => open.close()));
    },
  };
}
