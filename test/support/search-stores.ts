import type { RedisClient } from '../../shared/redis/connection.ts';
import type { TestService } from './service.ts';

/** Everything that one Redis key holds, as text, whatever its type. */
async function textOfKey(redis: RedisClient, key: string): Promise<string> {
  const type = await redis.type(key);
  switch (type) {
    case 'string':
      return (await redis.get(key)) ?? '';
    case 'hash':
      return JSON.stringify(await redis.hgetall(key));
    case 'list':
      return JSON.stringify(await redis.lrange(key, 0, -1));
    case 'set':
      return JSON.stringify(await redis.smembers(key));
    case 'zset':
      return JSON.stringify(await redis.zrange(key, '0', '-1'));
    case 'stream':
      return JSON.stringify(await redis.xrange(key, '-', '+'));
    case 'none':
      return '';
    default:
      throw new Error(`A Redis key of type ${type} cannot be searched`);
  }
}

function textOfLog({ log }: TestService): string[] {
  return log.lines.map(({ message, fields: { error, ...fields } }) => {
    const cause = error instanceof Error ? [error.stack, error.message, String(error.cause)] : [String(error)];
    return [message, JSON.stringify(fields), ...cause].join('\n');
  });
}

async function redisKeys({ redis, keyspace }: TestService): Promise<string[]> {
  // Of a tag `{name-0}` all that begins with `{name-`: shards, breakers, and the queues that belong to no shard.
  const { tag } = keyspace.shard(0);
  const match = `${tag.slice(0, -2)}*`;
  const keys: string[] = [];
  for (let cursor = '0'; ;) {
    const [next, page] = await redis.scan(cursor, 'MATCH', match, 'COUNT', 1_000);
    keys.push(...page);
    if (next === '0') return keys;
    cursor = next;
  }
}

/**
 * Where any of the words is: collections as `mongo:<name>`, keys as `redis:<what stands behind the shard's tag>`, and
 * `log`. Looks at every document of every collection, at every key's name and value, and at every line of the log.
 */
export async function findEverywhere(service: TestService, words: readonly string[]): Promise<string[]> {
  const has = (text: string) => words.some((word) => text.includes(word));
  const found = new Set<string>();
  const { db } = service.models.tenants.db;
  if (db === undefined) throw new Error('The database is not connected');
  for (const { name } of await db.listCollections().toArray())
    for await (const document of db.collection(name).find())
      if (has(JSON.stringify(document))) found.add(`mongo:${name}`);
  for (const key of await redisKeys(service)) {
    const kind = key.slice(key.indexOf('}') + 2).split(':')[0] ?? '';
    if (has(key) || has(await textOfKey(service.redis, key))) found.add(`redis:${kind}`);
  }
  if (textOfLog(service).some(has)) found.add('log');
  return [...found].sort();
}
