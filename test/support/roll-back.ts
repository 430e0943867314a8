import type { RedisClient } from '../../shared/redis/connection.ts';
import type { TcpProxy } from './tcp-proxy.ts';

/** All keys of a shard, by its tag, with what they hold. */
export async function snapshotOf(redis: RedisClient, tag: string): Promise<Map<string, Buffer>> {
  const values = new Map<string, Buffer>();
  for (const key of await redis.keys(`${tag}*`)) {
    const value = (await redis.dumpBuffer(key)) as Buffer | null;
    if (value !== null) values.set(key, value);
  }
  return values;
}

/** What a shard holds from now on: nothing but what it held then. */
export async function restore(redis: RedisClient, tag: string, before: ReadonlyMap<string, Buffer>): Promise<void> {
  const now = await redis.keys(`${tag}*`);
  if (now.length > 0) await redis.unlink(...now);
  for (const [key, value] of before) await redis.restore(key, 0, value);
}

interface Shard {
  /** Not through the proxy. */
  redis: RedisClient;
  tag: string;
  proxy: TcpProxy;
}

/**
 * Redis goes away from those behind the proxy, and comes back as it was. `first`: what reaches it before anybody says again
 * what it has lost, as a call that was under way.
 */
export async function rollBackTo(
  before: ReadonlyMap<string, Buffer>,
  { redis, tag, proxy }: Shard,
  first: () => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  proxy.set('reset');
  await restore(redis, tag, before);
  await first();
  proxy.set('pass');
}
