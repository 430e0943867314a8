import type { ProcessKind } from './config/load-config.ts';
import type { Config } from './config/settings.ts';
import { createPseudonyms } from './domain/pseudonyms.ts';
import { systemClock } from './lifecycle/clock.ts';
import type { Closer } from './lifecycle/closer.ts';
import type { Logger } from './logging/logger.ts';
import { prepareDatabase } from './mongo/administration/catalogue.ts';
import { readPseudonymKey } from './mongo/administration/service-secrets.ts';
import { connectMongo, watchMongo } from './mongo/connection.ts';
import { createCredentialCipher } from './mongo/credentials.ts';
import { createRoutingCache } from './mongo/routing/routing-cache.ts';
import { createRoutingRepository } from './mongo/routing/routing-repository.ts';
import { openRedis } from './redis/connection.ts';
import { createKeyspace } from './redis/keyspace.ts';
import type { Keyspace } from './redis/keyspace.ts';
import { watchMemory } from './redis/memory-watch.ts';
import { openRedisReturn } from './redis/redis-return.ts';
import type { Tracing } from './tracing/tracing.ts';

interface Beginning {
  config: Config;
  closer: Closer;
  log: Logger;
  /** Undefined: nothing is traced. */
  tracing: Tracing | undefined;
}

/** Called when the start has to wait for a store. */
type OnAway = (store: 'redis' | 'mongo') => void;

async function openRedisParts(kind: ProcessKind, beginning: Beginning, keyspace: Keyspace, onAway: OnAway) {
  const { config, closer, log } = beginning;
  const clients = await openRedis(config.redis.url, kind === 'api' ? 'producer' : 'worker', {
    keyspace,
    log,
    closer,
    onAway: () => {
      onAway('redis');
    },
  });
  const memory = watchMemory(clients.redis, log);
  closer.defer('memory watch', () => {
    memory.stop();
  });
  return { ...clients, memory };
}

/** A caller waits for the calls of an ingress. */
const MONGO_CALL_MS = { api: 1_000, worker: 10_000 } as const;

export type ProcessParts = Awaited<ReturnType<typeof openProcessParts>>;

/** `namespace` is for tests. */
export async function openProcessParts(
  kind: ProcessKind,
  beginning: Beginning,
  namespace: string | undefined,
  onAway: OnAway = () => undefined,
) {
  const { config, closer, log } = beginning;
  const clock = systemClock;
  const keyspace = createKeyspace(namespace);
  const redisParts = await openRedisParts(kind, beginning, keyspace, onAway);
  const redisReturn = openRedisReturn(redisParts.redis, keyspace, { clock, log, closer });

  await prepareDatabase(config.mongodb.uri, log, () => {
    onAway('mongo');
  });
  const mongo = await connectMongo(config.mongodb.uri, { callTimeoutMs: MONGO_CALL_MS[kind] });
  closer.defer('mongo', () => mongo.close());
  watchMongo(mongo, { log, closer });
  const cipher = createCredentialCipher(config.credentials.key, config.credentials.otherKeys);
  const routing = await createRoutingCache({ repository: createRoutingRepository(mongo, cipher), log });
  closer.defer('routing', () => {
    routing.stop();
  });
  return {
    ...beginning,
    requestTimeoutMs: config.limits.requestTimeoutSeconds * 1000,
    retentionMs: config.limits.streamRetentionSeconds * 1000,
    clock,
    keyspace,
    ...redisParts,
    ...redisReturn,
    mongo,
    pingMongo: () => mongo.db?.admin().ping() ?? Promise.reject(new Error('not connected')),
    cipher,
    pseudonyms: createPseudonyms(await readPseudonymKey(mongo, cipher, config.credentials.key)),
    routing,
  };
}
