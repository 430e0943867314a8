import type { Closer } from '../../lifecycle/closer.ts';
import type { Logger } from '../logging/logger.ts';
import { assertNoEviction, connectRedis, createRedis } from './connection.ts';
import type { ConnectionRole, RedisClient } from './connection.ts';

/**
 * The two connections of a process: one for commands, one for pub/sub. Rejects with one sentence where Redis cannot be
 * reached or may evict keys.
 */
export async function openRedis(
  url: string,
  role: Exclude<ConnectionRole, 'subscriber'>,
  log: Logger,
  closer: Closer,
): Promise<{ redis: RedisClient; subscriber: RedisClient }> {
  const redis = createRedis(url, role);
  closer.defer('redis', () =>
    redis.quit().catch(() => {
      redis.disconnect();
    }),
  );
  await connectRedis(redis);
  await assertNoEviction(redis);
  const subscriber = createRedis(url, 'subscriber');
  closer.defer('subscriber', () => {
    subscriber.disconnect();
  });
  await connectRedis(subscriber);
  for (const client of [redis, subscriber]) {
    client.on('error', (error: Error) => {
      log.warn('Redis reported an error.', { error });
    });
  }
  return { redis, subscriber };
}
