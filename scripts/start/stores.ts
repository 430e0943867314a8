import { startMongo } from '../embedded/mongo.ts';
import { startRedis, withRedis } from '../embedded/redis.ts';
import type { Log } from '../embedded/run-step.ts';
import { connectMongo } from '../../shared/mongo/connection.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import { assertSuitable } from '../../shared/redis/server-check.ts';
import type { StartSettings } from './settings.ts';
import type { StartState } from './state.ts';
import type { Supervisor } from '../harness/supervisor.ts';

/** Both stores: those named in the environment, checked before anything is installed, or else embedded ones. */
export async function startStores(
  supervisor: Supervisor,
  { dataDir, env, config }: StartSettings,
  { redisPassword: password }: Pick<StartState, 'redisPassword'>,
  log: Log,
) {
  const { REDIS_URL: givenRedis, MONGODB_URI: givenMongo } = env;
  if (givenRedis !== undefined) {
    // Also uses the other settings for Redis, such as the sentinels' password.
    await withRedis(config.redis.url, (client) => assertSuitable(client, createKeyspace()));
    log('Redis: the server of REDIS_URL');
  }
  if (givenMongo !== undefined) {
    await (await connectMongo(givenMongo)).close();
    log('MongoDB: the server of MONGODB_URI');
  }
  const options = { dataDir, log, env, signal: supervisor.signal };
  return {
    REDIS_URL: givenRedis ?? supervisor.adopt('Redis', await startRedis({ ...options, password })).url,
    MONGODB_URI: givenMongo ?? supervisor.adopt('MongoDB', await startMongo(options)).url,
  };
}
