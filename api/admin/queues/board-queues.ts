import { QUEUE_NAMES, WEBHOOK_QUEUE_NAMES } from '../../../shared/contracts/jobs.ts';
import type { Logger } from '../../../shared/logging/logger.ts';
import { createChatQueues, openQueue } from '../../../shared/queue/queues.ts';
import type { ShardDirectory } from '../../../shared/mongo/tenants/tenant-repository.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import type { Keyspace } from '../../../shared/redis/keyspace.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { Closer } from '../../../shared/lifecycle/closer.ts';
import type { BullQueue } from './queues-endpoints.ts';

export type BoardQueues = ReturnType<typeof openBoardQueues>;

interface BoardQueuesDeps {
  /** Must be ready: a queue on a connection that is not ends the process (shared/queue/queues.ts). */
  redis: RedisClient;
  keyspace: Keyspace;
  closer: Closer;
  shardDirectory: ShardDirectory;
  clock: Clock;
  log: Logger;
}

/** A shard appears with its first tenant, however many shards there were when this process started. */
const SHARDS_FRESH_MS = 2_000;

/** Opens every queue, for watching only. */
export function openBoardQueues(deps: BoardQueuesDeps) {
  const { redis, keyspace, closer, shardDirectory, clock, log } = deps;
  const onError = (error: Error) => {
    log.warn('The queue reported an error.', { error });
  };
  const chat = createChatQueues(redis, keyspace, onError);
  closer.defer('queues', () => chat.close());
  const webhooks = WEBHOOK_QUEUE_NAMES.map((name) =>
    openQueue(name, { client: redis, prefix: keyspace.webhooks, onError }),
  );
  const compliance = openQueue('compliance', { client: redis, prefix: keyspace.compliance, onError });
  const background = [...webhooks, compliance];
  closer.defer('background queues', async () => {
    await Promise.all(background.map((queue) => queue.close()));
  });
  let queues: readonly BullQueue[] = [];
  let readAt = -Infinity;

  async function read(): Promise<readonly BullQueue[]> {
    const now = clock.now();
    if (now - readAt < SHARDS_FRESH_MS) return queues;
    readAt = now;
    try {
      const shards = await shardDirectory.list();
      queues = shards.flatMap((shard) => QUEUE_NAMES.map((name) => chat.queue(shard, name)));
    } catch (error) {
      log.warn('The list of shards could not be read; the known ones are shown.', { error });
    }
    return queues;
  }

  return {
    /** The chat queues of every shard, including shards added since the start. */
    chat: read,
    /** Webhooks, exports and deletions, for the whole installation. */
    background: background.map(({ queue }) => queue),
  };
}
