import { Redis } from 'ioredis';
import type { Cluster } from 'ioredis';
import type { Closer } from '../../lifecycle/closer.ts';
import type { Logger } from '../logging/logger.ts';
import { BLOCKED_MS, createCluster, LOOK_EVERY_MS, SILENT_MS } from './cluster-client.ts';
import type { ConnectionRole, NodeOptions } from './cluster-client.ts';
import { corkTurns } from './cork-turns.ts';
import { assertSuitable } from './suitable-server.ts';

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
  for (const advice of await assertSuitable(redis)) log.warn(advice);
  const subscriber = createRedis(url, 'subscriber');
  closer.defer('subscriber', () => {
    subscriber.disconnect();
  });
  await connectRedis(subscriber);
  const timer = setInterval(() => {
    // A subscriber asks for nothing else, and would not see that nobody is there any more.
    subscriber.ping().catch(() => undefined);
  }, LOOK_EVERY_MS);
  timer.unref();
  closer.defer('subscriber ping', () => {
    clearInterval(timer);
  });
  for (const client of [redis, subscriber]) {
    client.on('error', (error: Error) => {
      log.warn('Redis reported an error.', { error });
    });
  }
  return { redis, subscriber };
}

export type RedisClient = Redis | Cluster;

/**
 * Every call of a request has a limit: with Redis away the caller gets its 503 within 2 s
 * (docs/architecture/facts.md section 3).
 */
const COMMAND_TIMEOUT_MS = 1_500;
const CONNECT_TIMEOUT_MS = 5_000;
/** ioredis's own back-off grows to 5 s; streams should be back sooner. */
const RECONNECT_MAX_MS = 1_000;

function optionsFor(role: ConnectionRole) {
  const common = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: (times: number) => Math.min(times * 50, RECONNECT_MAX_MS),
    // A server that has become a replica says so on connections that stay open: another address, or the same one a
    // moment later, has the master. 2: the command is sent again there.
    reconnectOnError: (error: Error) => (error.message.startsWith('READONLY ') ? 2 : false),
    lazyConnect: true,
  } satisfies NodeOptions;
  if (role === 'subscriber') return { ...common, maxRetriesPerRequest: null };
  if (role === 'worker') return { ...common, maxRetriesPerRequest: null };
  return {
    ...common,
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
    enableOfflineQueue: false,
  };
}

interface Address {
  host: string;
  port: number;
}

function parseNodes(hosts: string, defaultPort: number): Address[] {
  return hosts.split(',').map((entry) => {
    const url = `redis://${entry}`;
    if (entry === '' || !URL.canParse(url)) {
      throw new Error(`REDIS_URL names the address "${entry}", which is not HOST:PORT.`);
    }
    const { hostname, port } = new URL(url);
    return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? defaultPort : Number(port) };
  });
}

interface Credentials {
  username?: string;
  password?: string;
}

function parseCredentials(text: string): Credentials {
  const colon = text.indexOf(':');
  const username = decodeURIComponent(colon < 0 ? text : text.slice(0, colon));
  return {
    ...(username === '' ? {} : { username }),
    ...(colon < 0 ? {} : { password: decodeURIComponent(text.slice(colon + 1)) }),
  };
}

/** Several servers. */
interface Group extends Credentials {
  nodes: Address[];
  /** `rediss+…`: over TLS; so are sentinels unless `REDIS_SENTINEL_TLS` says otherwise. */
  isEncrypted: boolean;
}

/** What sentinels ask for themselves, beside what the servers ask for. */
interface SentinelAccess extends Credentials {
  isEncrypted: boolean;
}

export type RedisTarget =
  | { kind: 'single'; url: string }
  | ({ kind: 'cluster' } & Group)
  | ({ kind: 'sentinel'; name: string; sentinels: SentinelAccess } & Group);

/**
 * The forms of `REDIS_URL` (docs/spec/contract.md section 1). Throws on an impossible address or a missing master name.
 */
export function parseRedisUrl(url: string): RedisTarget {
  const match = /^redis(s?)\+(cluster|sentinel):\/\/(?:([^@]*)@)?([^/]*)(?:\/(.*))?$/.exec(url);
  if (match === null) return { kind: 'single', url };
  const [, encrypted, kind, credentials, hosts = '', path = ''] = match;
  const [name = '', query = ''] = path.split('?');
  const auth = { ...parseCredentials(credentials ?? ''), isEncrypted: encrypted === 's' };
  if (kind === 'cluster') return { kind: 'cluster', nodes: parseNodes(hosts, 6379), ...auth };
  if (name === '')
    throw new Error(
      'REDIS_URL with redis+sentinel:// must end in the name of the master, as in redis+sentinel://h1:26379,h2:26379/mymaster',
    );
  const sentinels = parseSentinelAccess(new URLSearchParams(query), auth.isEncrypted);
  return { kind: 'sentinel', nodes: parseNodes(hosts, 26379), name, sentinels, ...auth };
}

/** What `redisUrlOf` in shared/config has written. */
function parseSentinelAccess(query: URLSearchParams, isEncrypted: boolean): SentinelAccess {
  const [username, password, tls] = ['username', 'password', 'tls'].map(
    (name) => query.get(`sentinel_${name}`) ?? undefined,
  );
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    isEncrypted: tls === undefined ? isEncrypted : tls === 'true',
  };
}

function sentinelOptions(
  { nodes, name, sentinels }: Group & { name: string; sentinels: SentinelAccess },
  role: ConnectionRole,
): NodeOptions {
  const { username, password, isEncrypted } = sentinels;
  return {
    sentinels: nodes,
    name,
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    enableTLSForSentinelMode: isEncrypted,
    ...(isEncrypted ? { sentinelTLS: {} } : {}),
    // A master that hangs, or is cut off, closes nothing.
    socketTimeout: role === 'worker' ? BLOCKED_MS : SILENT_MS,
  };
}

/** Opens nothing yet: call `connect` (see `connectRedis`). */
export function createRedis(url: string, role: ConnectionRole): RedisClient {
  const target = parseRedisUrl(url);
  const options = optionsFor(role);
  if (target.kind === 'single') return corkTurns(new Redis(target.url, options));
  const auth = {
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
  };
  const tls = target.isEncrypted ? { tls: {} } : {};
  if (target.kind === 'sentinel')
    return corkTurns(new Redis({ ...options, ...auth, ...tls, ...sentinelOptions(target, role) }));
  return createCluster(target.nodes, role, { ...options, ...auth, ...tls });
}

/**
 * Waits until the client is ready: a BullMQ queue on a client that is not ready ends the process
 * (docs/architecture/facts.md section 5). Rejects with one sentence when Redis cannot be reached within `timeoutMs`.
 */
export async function connectRedis(client: RedisClient, timeoutMs = CONNECT_TIMEOUT_MS): Promise<void> {
  let lastError: unknown;
  const remember = (error: unknown) => (lastError = error);
  client.on('error', remember);
  const timer = new Promise<'late'>((resolve) => setTimeout(resolve, timeoutMs, 'late').unref());
  const ready = new Promise<'ready'>((resolve) =>
    client.once('ready', () => {
      resolve('ready');
    }),
  );
  client.connect().catch(remember);
  const outcome = await Promise.race([ready, timer]);
  client.off('error', remember);
  if (outcome === 'ready') return;
  client.disconnect();
  throw new Error('Redis does not answer; check REDIS_URL and that the server runs and accepts connections.', {
    cause: lastError,
  });
}
