import { Cluster } from 'ioredis';
import type { RedisOptions } from 'ioredis';

import { corkTurns } from './cork-turns.ts';

/**
 * A connection that brings no answer for this long has lost its server: a master that hangs, or is cut off, closes nothing.
 * The commands then go to the server that has taken over.
 */
export const SILENT_MS = 5_000;
/** As above, for connections whose calls block: those of BullMQ do for up to 10 s. */
export const BLOCKED_MS = 12_000;
/** Connections that ask for nothing hear of a fail-over by this: those of subscribers above all. */
export const LOOK_EVERY_MS = 2_000;
const CLOSED = 'Connection is closed.';

/**
 * `producer`: calls of an HTTP request, fails fast. `worker`: waits for Redis to come back (BullMQ asks for it).
 * `subscriber`: pub/sub only, never shared.
 */
export type ConnectionRole = 'producer' | 'worker' | 'subscriber';

/** `replyMapping` would be part of a client's type. */
export type NodeOptions = Omit<RedisOptions, 'replyMapping'>;

type ErrorHandlers = Record<'connectionClosed' | 'defaults', () => void>;

/** A cluster client whose commands wait for the cluster, as those of a single connection do for its server. */
class PatientCluster extends Cluster {
  override handleError(error: Error, ttl: { value?: unknown }, handlers: ErrorHandlers): void {
    // Without any node left the cluster connects again, and ioredis would give up what was under way.
    if (error.message === CLOSED && this.status !== 'ready' && this.status !== 'end') handlers.connectionClosed();
    else super.handleError(error, ttl, handlers);
  }
}

/**
 * Opens nothing yet. Commands of one turn share a write to each server, but no pipeline: ioredis puts a script into the
 * pipeline of its first argument, which is the number of its keys, and then rejects the whole pipeline where its keys
 * are of two masters (compare redis/ioredis issue 2109).
 */
export function createCluster(
  nodes: { host: string; port: number }[],
  role: ConnectionRole,
  options: NodeOptions,
): Cluster {
  const settings = {
    redisOptions: { ...options, socketTimeout: SILENT_MS },
    lazyConnect: true,
    enableOfflineQueue: role !== 'producer',
    shardedSubscribers: role === 'subscriber',
    // A certificate is of a name, which ioredis would replace by its address.
    ...(options.tls === undefined
      ? {}
      : {
          dnsLookup: (name: string, done: (error: null, address: string) => void) => {
            done(null, name);
          },
        }),
  };
  // ioredis gives up after 16 tries, 1.6 s: a caller's request has ended by then, and a worker waits.
  const cluster =
    role === 'producer'
      ? new Cluster(nodes, settings)
      : new PatientCluster(nodes, { ...settings, maxRedirections: Infinity });
  cluster.on('+node', corkTurns);
  lookNowAndThen(cluster);
  return cluster;
}

/** ioredis's own `slotsRefreshInterval` goes on after `quit` where that meets a refresh, and keeps the process alive. */
function lookNowAndThen(cluster: Cluster): void {
  const timer = setInterval(() => {
    if (cluster.status === 'ready') cluster.refreshSlotsCache();
  }, LOOK_EVERY_MS);
  timer.unref();
  cluster.once('end', () => {
    clearInterval(timer);
  });
}
