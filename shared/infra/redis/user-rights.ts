import type { Redis } from 'ioredis';

import { ACCESS_CHANNEL } from './keyspace.ts';
import type { Keyspace } from './keyspace.ts';

/**
 * What this service and BullMQ do with keys, scripts included, by the arguments behind the key. They have to be as many as
 * the command asks for: `acl_check_cmd` reads beyond fewer, and Redis 7.0 may crash.
 */
const KEY_COMMANDS: Record<string, string> = {
  '': 'DEL DUMP EXISTS GET INCR MGET PERSIST PEXPIRETIME PTTL TYPE UNLINK HGETALL HLEN HVALS LLEN LPOP RPOP SCARD SMEMBERS XLEN ZCARD ZPOPMIN ZRANDMEMBER',
  ' 1': 'APPEND BZPOPMIN EXPIRE INCRBY PEXPIRE PEXPIREAT SET HDEL HEXISTS HGET HMGET HSCAN LINDEX LPOS LPUSH RPUSH SADD SISMEMBER SREM XDEL ZMSCORE ZRANK ZREM ZSCORE',
  ' 1 1':
    'HINCRBY HMSET HSET LRANGE LREM LSET LTRIM RESTORE XACK XRANGE XREVRANGE ZADD ZCOUNT ZLEXCOUNT ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYSCORE',
  ' MAXLEN 1': 'XTRIM',
  ' * name value': 'XADD',
};
const TWO_KEYS = ['RENAME', 'RPOPLPUSH'];
const OTHER_CALLS = ['EVALSHA 0 0', 'SCRIPT LOAD 0', 'MULTI', 'EXEC', 'INFO', 'PING', 'SCAN 0', 'TIME'];
const CLUSTER_CALLS = ['CLUSTER SLOTS', 'CLUSTER INFO', 'CLUSTER KEYSLOT 0'];

/** Returns the commands of ARGV that the user may not call, each with its arguments. Servers before 7.0 cannot say. */
const LACKING = `
local lacking = {}
if not redis.acl_check_cmd then return lacking end
for _, call in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(call, '%S+') do words[#words + 1] = word end
  if not redis.acl_check_cmd(unpack(words)) then lacking[#lacking + 1] = call end
end
return lacking`;

const NAMED_MAX = 3;

function sentenceOf(what: string): string {
  return `The Redis user lacks rights that this service needs: ${what}. Give it those of docs/guide/operating.md, "A Redis user of its own".`;
}

/** Calls that stand for all that a user has to be allowed. */
export function callsOf(keyspace: Keyspace, isCluster: boolean): string[] {
  const { tag, cancelled, channel } = keyspace.shard(0);
  const key = `${tag}:check`;
  const others = [`${keyspace.webhooks}:check`, `${keyspace.compliance}:check`];
  others.push(
    keyspace.breakers.states,
    keyspace.routing.mark,
    keyspace.mongoReached,
    keyspace.administration.endedSession('check'),
  );
  const channels = [cancelled, channel('check'), keyspace.breakers.channel];
  const [publish, subscribe] = isCluster ? ['SPUBLISH', 'SSUBSCRIBE'] : ['PUBLISH', 'SUBSCRIBE'];
  return [
    ...Object.entries(KEY_COMMANDS).flatMap(([more, names]) => names.split(' ').map((name) => `${name} ${key}${more}`)),
    ...TWO_KEYS.map((name) => `${name} ${key} ${key}`),
    ...others.flatMap((other) => [`GET ${other}`, `SET ${other} 1`]),
    ...OTHER_CALLS,
    ...channels.flatMap((name) => [`${publish} ${name} -`, `${subscribe} ${name}`]),
    `PUBLISH ${ACCESS_CHANNEL} -`,
    `SUBSCRIBE ${ACCESS_CHANNEL}`,
    ...(isCluster ? CLUSTER_CALLS : []),
  ];
}

/**
 * Whether the user of a connection may do what this service does, in a sentence; undefined: it may. A script that is refused
 * in its middle leaves half of its work behind, so nobody should find out then.
 */
export async function lackOfRights(server: Redis, keyspace: Keyspace, isCluster: boolean): Promise<string | undefined> {
  try {
    const lacking = (await server.eval(LACKING, 0, ...callsOf(keyspace, isCluster))) as string[];
    if (lacking.length === 0) return undefined;
    const more = lacking.length > NAMED_MAX ? ` and ${lacking.length - NAMED_MAX} more` : '';
    return sentenceOf(`${lacking.slice(0, NAMED_MAX).join(', ')}${more}`);
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('NOPERM ')) return sentenceOf(error.message);
    throw error;
  }
}
