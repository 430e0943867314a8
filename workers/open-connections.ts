import type { Config } from '../shared/config/load-config.ts';
import { createHttpClient } from '../shared/infra/http/http-client.ts';
import type { Logger } from '../shared/infra/logging/logger.ts';
import { prepareDatabase } from '../shared/infra/mongo/catalogue.ts';
import { connectMongo } from '../shared/infra/mongo/connection.ts';
import { readPseudonymKey } from '../shared/infra/mongo/administration/service-secrets.ts';
import { createCredentialCipher } from '../shared/infra/mongo/credentials.ts';
import { createRoutingCache } from '../shared/infra/mongo/routing/routing-cache.ts';
import { createRoutingRepository } from '../shared/infra/mongo/routing/routing-repository.ts';
import { openRedis } from '../shared/infra/redis/connection.ts';
import { createKeyspace } from '../shared/infra/redis/keyspace.ts';
import { watchMemory } from '../shared/infra/redis/memory-watch.ts';
import { createRoutingMark } from '../shared/infra/redis/routing/routing-mark.ts';
import { systemClock } from '../shared/lifecycle/clock.ts';
import type { Closer } from '../shared/lifecycle/closer.ts';

export type WorkerConnections = Awaited<ReturnType<typeof openConnections>>;

/**
 * What every part of a worker needs to start: the settings, and the worker's connections to both stores, the routes in
 * force, and the HTTP client for providers.
 */
export async function openConnections(config: Config, namespace: string | undefined, log: Logger, closer: Closer) {
  const keyspace = createKeyspace(namespace);
  const { redis, subscriber } = await openRedis(config.redisUrl, 'worker', { keyspace, log, closer });
  const memory = watchMemory(redis, log);
  closer.defer('memory watch', () => {
    memory.stop();
  });

  await prepareDatabase(config.mongodbUri, log);
  const mongo = await connectMongo(config.mongodbUri);
  closer.defer('mongo', () => mongo.close());

  const cipher = createCredentialCipher(config.credentialsKey, config.credentialsKeys);
  const pseudonymKey = await readPseudonymKey(mongo, cipher, config.credentialsKey);
  const routing = await createRoutingCache({
    repository: createRoutingRepository(mongo, cipher),
    readMark: createRoutingMark(redis, keyspace).read,
    log,
  });
  closer.defer('routing', () => {
    routing.stop();
  });
  const http = createHttpClient();
  closer.defer('http', () => http.close());
  const process = { config, clock: systemClock, closer, log };
  return { ...process, keyspace, redis, subscriber, memory, mongo, cipher, pseudonymKey, routing, http };
}
