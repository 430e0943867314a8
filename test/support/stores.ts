import { randomBytes } from 'node:crypto';

import { connectMongo } from '../../shared/mongo/connection.ts';
import type { MongoConnection } from '../../shared/mongo/connection.ts';
import { connectRedis, createRedis } from '../../shared/redis/connection.ts';
import type { ConnectionRole, RedisClient } from '../../shared/redis/connection.ts';

function setting(name: 'TEST_REDIS_URL' | 'TEST_MONGODB_URI'): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set; run the tests through npm test.`);
  return value;
}

/** The run's own Redis. */
export function redisUrl(): string {
  return setting('TEST_REDIS_URL');
}

/**
 * A database of the run's own MongoDB; each test file has one. Nobody drops it: the server ends with the run, and the
 * stand-in answers nobody else while it drops thousands of rows.
 */
export function mongoUri(database: string): string {
  const url = new URL(setting('TEST_MONGODB_URI'));
  url.pathname = `/${database}`;
  return url.href;
}

/** A name for a database or a namespace in Redis that nobody else has. */
export function uniqueName(prefix: string): string {
  return `${prefix}${randomBytes(6).toString('hex')}`;
}

/** A connected client; the run's own Redis unless told otherwise. */
export async function openTestRedis(role: ConnectionRole, url = redisUrl()): Promise<RedisClient> {
  const client = createRedis(url, role);
  await connectRedis(client);
  return client;
}

/** A connection to a database of its own. */
export function openTestMongo(database: string): Promise<MongoConnection> {
  return connectMongo(mongoUri(database));
}
