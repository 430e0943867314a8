import { Redis } from 'ioredis';
import type { Cluster } from 'ioredis';

import { withTimeLimit } from '../lifecycle/clock.ts';
import { nameOf } from './cluster-slots.ts';
import { ACCESS_CHANNEL } from './keyspace.ts';
import type { Keyspace } from './keyspace.ts';

/**
 * Commands of this service and BullMQ, scripts included, by the arguments behind the key. They need as many arguments
 * as the command asks for: `acl_check_cmd` reads beyond fewer, and Redis 7.0 may crash.
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

/** Returns commands of ARGV, with arguments, that the user may not call. Servers before 7.0 cannot say. */
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

/** These calls stand for all rights that a user needs. */
export function callsOf(keyspace: Keyspace, isCluster: boolean): string[] {
  const { tag, cancelled, channel } = keyspace.shard(0);
  const key = `${tag}:check`;
  const others = [`${keyspace.webhooks}:check`, `${keyspace.compliance}:check`];
  others.push(
    keyspace.providerTests.result('check'),
    keyspace.breakers.states,
    keyspace.mongoReached,
    keyspace.administration.endedSession('check'),
  );
  const channels = [cancelled, channel('check'), keyspace.breakers.channel, keyspace.providerTests.channel];
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
 * A sentence where the connection's user lacks rights; undefined: it has them. Checked at the start, because a script
 * that is refused in its middle leaves half of its work behind.
 */
async function lackOfRights(server: Redis, keyspace: Keyspace, isCluster: boolean): Promise<string | undefined> {
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

/** Older servers do not read the flags by which scripts run in a full Redis. */
const MAJOR_VERSION_MIN = 7;

/** Judges a server by its `INFO`; undefined: it is suitable. Source: docs/spec.md#stores. */
export function redisServerFault(info: string): string | undefined {
  const version = /redis_version:(\S+)/.exec(info)?.[1];
  if (version !== undefined && Number.parseInt(version, 10) < MAJOR_VERSION_MIN)
    return `Redis is version ${version}; it must be ${MAJOR_VERSION_MIN}.0 or newer.`;
  const policy = /maxmemory_policy:(\S+)/.exec(info)?.[1];
  if (policy === undefined || policy === 'noeviction') return undefined;
  // A server that evicts keys would lose holds and streams.
  return `Redis has maxmemory-policy ${policy}, which may drop running requests; set it to noeviction (CONFIG SET maxmemory-policy noeviction).`;
}

/**
 * Warns of a usable server. A master cut off from its replicas takes requests until it is replaced, and all of them are
 * lost; `min_slaves_good_slaves` is there only where `min-replicas-to-write` is set.
 */
export function adviceOnServer(info: string): string[] {
  const replicas = Number(/connected_slaves:(\d+)/.exec(info)?.[1] ?? 0);
  const advice = [];
  if (info.includes(NO_PASSWORD))
    advice.push(
      'REDIS_URL has a password, and Redis asks nobody for one: whoever reaches it may read and change everything. Set requirepass, or a user with a password (ACL SETUSER).',
    );
  if (info.includes('aof_enabled:0'))
    advice.push(
      'Redis keeps no append-only file: a Redis that is started again has lost what ran and what was not booked. Set appendonly yes.',
    );
  if (/^maxmemory:0\r?$/m.test(info))
    advice.push(
      'Redis has no maxmemory: it grows until the machine kills it, and nothing is refused before. Set maxmemory to three quarters of what it may use.',
    );
  if (replicas > 0 && !info.includes('min_slaves_good_slaves:'))
    advice.push(
      'Redis has replicas and takes writes that none of them has: a master that is cut off loses what it accepts until it ' +
        'is replaced. With two replicas or more, set min-replicas-to-write 1 and min-replicas-max-lag 10.',
    );
  return advice;
}

function adviceOnSilent(name: string): string {
  return `The Redis master ${name} does not answer and could not be judged; its tenants wait until it is back or replaced.`;
}

/** A master that hangs, or is gone, refuses nothing. */
const ANSWER_MS = 3_000;
const SECTIONS = ['server', 'memory', 'replication', 'persistence', 'cluster'];

/** Says why a server cannot be a client's only one, which follows no redirection or fail-over. Undefined: it can. */
export function faultOfSingle(info: string): string | undefined {
  if (info.includes('cluster_enabled:1'))
    return 'Redis is a node of a cluster; write REDIS_URL as redis+cluster://HOST:PORT (rediss+cluster:// over TLS).';
  const master = /role:slave[^]*?master_host:(\S+)\s+master_port:(\d+)/.exec(info);
  return master === null
    ? undefined
    : `Redis is a replica, which takes no writes; name its master in REDIS_URL (${master[1]}:${master[2]}, as the replica knows it).`;
}

/** The client would stay in database 0 where the server lacks the one of its address. */
async function selectOwn(client: Redis): Promise<void> {
  const { db = 0 } = client.options;
  if (db === 0) return;
  await client.select(db).catch((cause: unknown) => {
    if (!(cause instanceof Error && /out of range|invalid DB index/.test(cause.message))) throw cause;
    throw new Error(
      `Redis does not open database ${db}; name one in REDIS_URL that the server has (CONFIG GET databases), or none.`,
      { cause },
    );
  });
}

function isSingle(client: Redis | Cluster): client is Redis {
  return client instanceof Redis && (client.options.sentinels ?? null) === null;
}

/** A server that is sent a password may ask nobody for one. */
async function needsNoPassword(server: Redis): Promise<boolean> {
  // ioredis has null for none.
  if ((server.options.password ?? '') === '') return false;
  const nobody = server.duplicate({ username: '', password: '', enableReadyCheck: false, retryStrategy: () => null });
  nobody.on('error', () => undefined);
  try {
    await nobody.connect();
    await withTimeLimit(nobody.ping(), ANSWER_MS, 'Redis does not answer');
    return true;
  } catch {
    return false;
  } finally {
    nobody.disconnect();
  }
}

/** Written like a section of `INFO`, which no server sends. */
const NO_PASSWORD = 'parley_password:none';

/** Throws where the server's user may not do what this service does. */
async function infoOf(server: Redis, keyspace: Keyspace, isCluster: boolean): Promise<string> {
  const fault = await lackOfRights(server, keyspace, isCluster);
  if (fault !== undefined) throw new Error(fault);
  const sections = await Promise.all(SECTIONS.map((section) => server.info(section)));
  return [...sections, ...((await needsNoPassword(server)) ? [NO_PASSWORD] : [])].join('\n');
}

/**
 * Reads a cluster's answering masters, at least one, and names the silent ones. A process starts without these, because
 * other masters' tenants go on.
 */
async function infosOf(cluster: Cluster, keyspace: Keyspace): Promise<{ infos: string[]; silent: string[] }> {
  const silent: { name: string; error: unknown }[] = [];
  async function ask(server: Redis): Promise<string[]> {
    try {
      await withTimeLimit(server.ping(), ANSWER_MS, 'Redis does not answer');
    } catch (error) {
      // A refusal is an answer, which `infoOf` explains.
      if (!(error instanceof Error && error.name === 'ReplyError')) {
        silent.push({ name: nameOf(server), error });
        return [];
      }
    }
    return [await infoOf(server, keyspace, true)];
  }
  const infos = (await Promise.all(cluster.nodes('master').map(ask))).flat();
  if (infos.length === 0) throw new Error('No master of the Redis Cluster answers.', { cause: silent[0]?.error });
  return { infos, silent: silent.map(({ name }) => name) };
}

/** Throws where a server is unsuitable. Returns warnings for the operator, each once. */
export async function assertSuitable(client: Redis | Cluster, keyspace: Keyspace): Promise<string[]> {
  const { infos, silent } =
    client instanceof Redis
      ? { infos: [await infoOf(client, keyspace, false)], silent: [] }
      : await infosOf(client, keyspace);
  const fault = infos
    .map((info) => (isSingle(client) ? faultOfSingle(info) : undefined) ?? redisServerFault(info))
    .find((each) => each !== undefined);
  if (fault !== undefined) throw new Error(fault);
  if (isSingle(client)) await selectOwn(client);
  return [...new Set([...infos.flatMap(adviceOnServer), ...silent.map(adviceOnSilent)])];
}
