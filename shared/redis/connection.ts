/**
 * Opens connections to Redis: one server, a master behind Sentinel, or a cluster (redis-target.ts).
 *
 * - An ingress's commands fail in time for a 503; a worker's wait for the next master. `READONLY` makes a client
 *   reconnect and send again.
 * - On a cluster, scripts and single commands use ioredis's cluster client, messages use sharded channels, and BullMQ's
 *   workers have plain connections that follow the master of their queue's slot (slot-client.ts).
 * - A server that takes no writes (too few replicas, a full disk) says so before it does anything, and scripts are sent
 *   again until it does (scripts.ts).
 */
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';

import { Cluster, Redis } from 'ioredis';
import type { RedisOptions } from 'ioredis';

import type { Closer } from '../lifecycle/closer.ts';
import type { Logger } from '../logging/logger.ts';
import type { Keyspace } from './keyspace.ts';
import {
  RedisTimeoutError,
  isRedisFault,
  mayReturn,
  reasonOf,
  redisStartFault,
  rememberRejections,
} from './redis-faults.ts';
import { parseRedisUrl } from './redis-target.ts';
import type { Group, SentinelAccess, TlsFiles } from './redis-target.ts';
import { assertSuitable } from './server-check.ts';

/**
 * Lets all commands of one turn of the event loop share a write: the socket holds them back until the turn ends, and
 * keeps their order, pipelines and transactions included. ioredis's own auto-pipelining copies every defined script
 * onto a pipeline each turn, and waits for the answers of the turn before (docs/benchmarks/performance-log.md).
 */
export function corkPerTick(client: Redis): Redis {
  const send = client.sendCommand.bind(client);
  const duplicate = client.duplicate.bind(client);
  /** Corked in this turn; a reconnect brings another one. */
  let corked: Redis['stream'] | undefined;

  function cork(socket: Redis['stream']): void {
    corked = socket;
    socket.cork();
    setImmediate(() => {
      if (corked === socket) corked = undefined;
      // Does nothing if the socket has ended: ioredis repeats what has no answer.
      socket.uncork();
    });
  }

  client.sendCommand = (command, stream) => {
    if (client.status === 'ready' && client.stream !== corked) cork(client.stream);
    return send(command, stream);
  };
  // BullMQ duplicates its connection to wait for jobs.
  client.duplicate = (override) => {
    const copy = duplicate(override);
    corkPerTick(copy);
    return rememberRejections(copy);
  };
  return client;
}

/**
 * After this silence a connection has lost its server: a master that hangs, or is cut off, closes nothing. Its commands
 * then go to the server that has taken over.
 */
const SILENT_MS = 5_000;
/** For connections whose calls block: BullMQ's do for up to 10 s. */
export const BLOCKED_MS = 12_000;
/** Connections that ask for nothing, above all subscribers, notice a fail-over by this look. */
const LOOK_EVERY_MS = 2_000;
const CLOSED = 'Connection is closed.';

/** `producer`: an HTTP request's, fails fast. `worker`: waits, as BullMQ requires. `subscriber`: never shared. */
export type ConnectionRole = 'producer' | 'worker' | 'subscriber';

/** `replyMapping` would be part of a client's type. */
export type NodeOptions = Omit<RedisOptions, 'replyMapping'>;

type ErrorHandlers = Record<'connectionClosed' | 'defaults', () => void>;

/** Commands wait for the cluster, as a single connection's do for its server. */
class PatientCluster extends Cluster {
  override handleError(error: Error, ttl: { value?: unknown }, handlers: ErrorHandlers): void {
    // Without any node left the cluster connects again, and ioredis would give up commands under way.
    if (error.message === CLOSED && this.status !== 'ready' && this.status !== 'end') handlers.connectionClosed();
    else super.handleError(error, ttl, handlers);
  }
}

/**
 * Opens nothing yet. Commands of one turn share a write, but no pipeline: ioredis puts a script into the pipeline of
 * its first argument, the number of its keys, and rejects that pipeline where its keys have two masters (compare
 * redis/ioredis issue 2109).
 */
function createCluster(nodes: { host: string; port: number }[], role: ConnectionRole, options: NodeOptions): Cluster {
  const settings = {
    redisOptions: { ...options, socketTimeout: SILENT_MS },
    lazyConnect: true,
    enableOfflineQueue: role !== 'producer',
    shardedSubscribers: role === 'subscriber',
    // A certificate has a name, which ioredis would replace by its address.
    ...(options.tls === undefined
      ? {}
      : {
          dnsLookup: (name: string, done: (error: null, address: string) => void) => {
            done(null, name);
          },
        }),
  };
  // ioredis gives up after 16 tries, 1.6 s: then a caller's request has ended, but a worker waits.
  const cluster =
    role === 'producer'
      ? new Cluster(nodes, settings)
      : new PatientCluster(nodes, { ...settings, maxRedirections: Infinity });
  cluster.on('+node', corkPerTick);
  lookNowAndThen(cluster);
  return cluster;
}

/** ioredis's own `slotsRefreshInterval` goes on if `quit` meets a refresh, and keeps the process alive. */
function lookNowAndThen(cluster: Cluster): void {
  const timer = setInterval(() => {
    if (cluster.status === 'ready') cluster.refreshSlotsCache();
  }, LOOK_EVERY_MS);
  timer.unref();
  cluster.once('end', () => {
    clearInterval(timer);
  });
}

interface OpenRedisDeps {
  keyspace: Keyspace;
  log: Logger;
  closer: Closer;
  /** The start waits for a Redis that is away. */
  onAway?: (() => void) | undefined;
}

/** Waits for a Redis that is away, and says so once; any other fault rejects with one sentence. */
async function connectPatiently(
  url: string,
  role: ConnectionRole,
  { log, onAway }: OpenRedisDeps,
): Promise<RedisClient> {
  for (let isSaid = false; ; isSaid = true) {
    const client = createRedis(url, role);
    try {
      await connectRedis(client);
      return client;
    } catch (error) {
      if (!(error instanceof RedisTimeoutError)) throw error;
      if (!isSaid) {
        log.warn(`${error.message} The start waits for it.`);
        onAway?.();
      }
      await pause(RECONNECT_MAX_MS);
    }
  }
}

/**
 * Opens two connections, for commands and for pub/sub. Waits for a Redis that is away. Rejects with one sentence where
 * Redis cannot be used, may evict keys or refuses what this service does.
 */
export async function openRedis(
  url: string,
  role: Exclude<ConnectionRole, 'subscriber'>,
  deps: OpenRedisDeps,
): Promise<{ redis: RedisClient; subscriber: RedisClient }> {
  const { keyspace, log, closer } = deps;
  const redis = await connectPatiently(url, role, deps);
  closer.defer('redis', () =>
    redis.quit().catch(() => {
      redis.disconnect();
    }),
  );
  for (const advice of await assertSuitable(redis, keyspace)) log.warn(advice);
  const subscriber = await connectPatiently(url, 'subscriber', deps);
  closer.defer('subscriber', () => {
    subscriber.disconnect();
  });
  const timer = setInterval(() => {
    // A subscriber asks for nothing else, so it would not notice a lost server.
    subscriber.ping().catch(() => undefined);
  }, LOOK_EVERY_MS);
  timer.unref();
  closer.defer('subscriber ping', () => {
    clearInterval(timer);
  });
  closer.defer('watch of Redis', log.watchStore({ name: 'Redis', isFault: isRedisFault, ping: () => redis.ping() }));
  for (const client of [redis, subscriber]) {
    client.on('error', (error: Error) => {
      log.warn('Redis reported an error.', { error });
    });
  }
  return { redis, subscriber };
}

export type RedisClient = Redis | Cluster;

/** Limits every call of a request: without Redis the caller gets 503 within 2 s (docs/spec.md#stores-away). */
const COMMAND_TIMEOUT_MS = 1_500;
const CONNECT_TIMEOUT_MS = 5_000;
/** A client asks a cluster's servers in turn; one that hangs, or is gone, takes `SILENT_MS`. */
const CONNECT_CLUSTER_MS = 12_000;
/** ioredis's own back-off grows to 5 s; streams should be back sooner. */
const RECONNECT_MAX_MS = 1_000;

function optionsFor(role: ConnectionRole) {
  const common = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: (times: number) => Math.min(times * 50, RECONNECT_MAX_MS),
    // A server that became a replica says so on open connections: the master has another address, or soon this one. 2:
    // the command is sent again there.
    reconnectOnError: (error: Error) => (error.message.startsWith('READONLY ') ? 2 : false),
    lazyConnect: true,
  } satisfies NodeOptions;
  if (role !== 'producer') return { ...common, maxRetriesPerRequest: null };
  return { ...common, maxRetriesPerRequest: 1, commandTimeout: COMMAND_TIMEOUT_MS, enableOfflineQueue: false };
}

/** Reads TLS settings other than Node.js's own. Throws where a file is unreadable or not PEM. */
function readTls({ ca, cert, key }: TlsFiles) {
  try {
    const tls = {
      ...(ca === undefined ? {} : { ca: readFileSync(ca) }),
      ...(cert === undefined ? {} : { cert: readFileSync(cert) }),
      ...(key === undefined ? {} : { key: readFileSync(key) }),
    };
    createSecureContext(tls);
    return tls;
  } catch (cause) {
    throw new Error(
      'A certificate for Redis cannot be used; check REDIS_TLS_CA_FILE, REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE.',
      { cause },
    );
  }
}

function sentinelOptions(
  { nodes, name, sentinels }: Group & { name: string; sentinels: SentinelAccess },
  role: ConnectionRole,
  tls: object,
): NodeOptions {
  const { username, password, isEncrypted } = sentinels;
  return {
    sentinels: nodes,
    name,
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    enableTLSForSentinelMode: isEncrypted,
    ...(isEncrypted ? { sentinelTLS: tls } : {}),
    // A master that hangs, or is cut off, closes nothing.
    socketTimeout: role === 'worker' ? BLOCKED_MS : SILENT_MS,
  };
}

function createClient(url: string, role: ConnectionRole): RedisClient {
  const target = parseRedisUrl(url);
  const options = optionsFor(role);
  const tls = readTls(target.files);
  if (target.kind === 'single')
    return corkPerTick(new Redis(target.url, target.url.startsWith('rediss:') ? { ...options, tls } : options));
  const auth = {
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
  };
  const common = { ...options, ...auth, ...(target.isEncrypted ? { tls } : {}) };
  if (target.kind === 'sentinel') return corkPerTick(new Redis({ ...common, ...sentinelOptions(target, role, tls) }));
  return createCluster(target.nodes, role, common);
}

/** Opens nothing yet: call `connect` (see `connectRedis`). */
export function createRedis(url: string, role: ConnectionRole): RedisClient {
  return rememberRejections(createClient(url, role));
}

function isEncrypted(client: RedisClient): boolean {
  const options = client instanceof Redis ? client.options : client.options.redisOptions;
  return options?.tls !== undefined;
}

/**
 * Resolves once the client is ready: a BullMQ queue on one that is not ends the process (shared/queue/queues.ts). After
 * `timeoutMs`, rejects with one sentence, with the fault where it is known.
 */
export async function connectRedis(
  client: RedisClient,
  timeoutMs = client.isCluster ? CONNECT_CLUSTER_MS : CONNECT_TIMEOUT_MS,
): Promise<void> {
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
  if (outcome === 'ready') {
    client.off('error', remember);
    return;
  }
  // Keeps listening: calls under way may fail a moment later, unheard by anybody else.
  client.disconnect();
  const fault = redisStartFault({ error: lastError, isEncrypted: isEncrypted(client) });
  throw new (mayReturn(fault) ? RedisTimeoutError : Error)(fault, { cause: reasonOf(lastError) });
}

/** Each subscriber's receivers by channel. */
const takers = new WeakMap<RedisClient, Map<string, (message: string) => void>>();

/**
 * Hands one channel's messages to `take`; on a cluster, those of its name's slot. Resolves once Redis has confirmed it;
 * ioredis repeats it after a reconnect. Safe to repeat: the last `take` counts.
 */
export async function subscribe(
  subscriber: RedisClient,
  channel: string,
  take: (message: string) => void,
): Promise<void> {
  const known = takers.get(subscriber);
  const own = known ?? new Map<string, typeof take>();
  own.set(channel, take);
  if (known === undefined) {
    takers.set(subscriber, own);
    const receive = (from: string, message: string) => own.get(from)?.(message);
    subscriber.on('message', receive);
    subscriber.on('smessage', receive);
  }
  await (subscriber.isCluster ? subscriber.ssubscribe(channel) : subscriber.subscribe(channel));
}

/** Calls back whenever `subscriber` may have missed messages. */
export function onResubscribed(subscriber: RedisClient, listener: () => void): void {
  subscriber.on('ready', listener);
  if (!(subscriber instanceof Cluster)) return;
  // A cluster's subscriber changes its connections by itself.
  subscriber.on('subscribersReady', listener);
  subscriber.on('-node', listener);
}
