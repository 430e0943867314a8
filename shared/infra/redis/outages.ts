import { Cluster } from 'ioredis';
import type { Redis } from 'ioredis';

import { repeat } from '../../lifecycle/repeat.ts';
import type { Repeating } from '../../lifecycle/repeat.ts';
import type { RedisClient } from './connection.ts';
import { isRefusing, onTaken } from './refused-calls.ts';
import { inTime } from './timing.ts';

/** More than a renewal interval of leases: by then every living worker has renewed (workers/pipeline/lease/lease.ts). */
const BACK_MS = 5_000;
/** By then whoever missed something in Redis has said so. */
const REMEMBERED_MS = 30_000;
const LOOK_EVERY_MS = 250;
const ANSWER_MS = 1_000;
/** A single server is asked so often, and is away when so many times in a row it has not answered yet. */
const ASK_EVERY_MS = 1_000;
const UNANSWERED_MAX = 3;

/** Knows when Redis, or one master of a cluster, is or was away. */
export interface Outages {
  /** Whether Redis came back a moment ago, or is away. */
  hasReconnectedRecently(withinMs?: number): boolean;
  /** For how long Redis was away before it came back, within the last half minute; else 0. Milliseconds, rounded up. */
  lastAwayMs(): number;
  /** Called whenever Redis is back: it may have lost its last writes. */
  onReturn(listener: () => void): void;
  stop(): void;
}

/** `client` is connected already; only what follows is an outage. */
export function watchOutages(client: RedisClient): Outages {
  let backAt = -Infinity;
  let awayMs = 0;
  const listeners: (() => void)[] = [];
  const announce = () => {
    backAt = performance.now();
    awayMs = Math.ceil(outage.lastedMs());
    for (const listener of listeners) listener();
  };
  const outage = client instanceof Cluster ? watchMasters(client, announce) : watchConnection(client, announce);
  // Leases and locks run out while a server refuses writes, as they do while it is away. One master of a cluster may do so
  // for hours, and the others go on.
  onTaken(client, announce);
  const isAway = () => outage.isAway() || (!(client instanceof Cluster) && isRefusing(client));
  return {
    hasReconnectedRecently: (withinMs = BACK_MS) => isAway() || performance.now() - backAt < withinMs,
    lastAwayMs: () => (performance.now() - backAt < REMEMBERED_MS ? awayMs : 0),
    onReturn: (listener) => listeners.push(listener),
    stop: outage.stop,
  };
}

interface Outage {
  isAway(): boolean;
  /** How long the outage that is just over has lasted, at the most. */
  lastedMs(): number;
  stop(): void;
}

/**
 * A server that hangs closes nothing: it is away once it has answered nothing for a while. Nobody could renew a lease
 * meanwhile, as if its connections had broken.
 */
function watchConnection(client: Redis, announce: () => void): Outage {
  let isAsking = false;
  /** Counted, not timed: a process that slept itself has missed no answer. */
  let unanswered = 0;
  let missed = 0;
  const isSilent = () => unanswered >= UNANSWERED_MAX;

  async function ask(): Promise<void> {
    if (isAsking) {
      unanswered += 1;
      return;
    }
    isAsking = true;
    const hasAnswered = await client.ping().then(
      () => true,
      () => false,
    );
    isAsking = false;
    const wasSilent = isSilent();
    missed = unanswered;
    unanswered = hasAnswered ? 0 : unanswered + 1;
    if (wasSilent && hasAnswered) announce();
  }

  client.on('ready', () => {
    missed = unanswered;
    unanswered = 0;
    announce();
  });
  const asking = setInterval(() => void ask(), ASK_EVERY_MS);
  asking.unref();
  return {
    isAway: () => client.status !== 'ready' || isSilent(),
    lastedMs: () => (missed + 1) * ASK_EVERY_MS,
    stop() {
      clearInterval(asking);
    },
  };
}

/**
 * A cluster client stays `ready` while one of its masters is replaced. The master is away from the moment its connection
 * ends, and back when every slot has a master that answers.
 */
function watchMasters(cluster: Cluster, announce: () => void): Outage {
  let looking: Repeating | undefined;
  let stopped = false;
  let goneAt = performance.now();

  function end(): void {
    void looking?.stop();
    looking = undefined;
  }

  async function look(): Promise<void> {
    const names = new Set(cluster.slots.map(([master]) => master));
    const masters = cluster.nodes('master').filter(({ options }) => names.has(`${options.host}:${options.port}`));
    if (cluster.status === 'ready' && masters.length === names.size) {
      const replies = await inTime(Promise.all(masters.map((master) => master.info('replication'))), ANSWER_MS);
      if (looking !== undefined && replies.every((reply) => reply.includes('role:master'))) {
        end();
        announce();
        return;
      }
    }
    cluster.refreshSlotsCache();
  }

  cluster.on('-node', (node: Redis) => {
    if (node.options.readOnly === true || looking !== undefined || stopped) return;
    goneAt = performance.now();
    looking = repeat(
      look,
      () => LOOK_EVERY_MS,
      () => {
        cluster.refreshSlotsCache();
      },
    );
  });
  return {
    isAway: () => looking !== undefined || cluster.status !== 'ready',
    lastedMs: () => performance.now() - goneAt,
    stop() {
      stopped = true;
      end();
    },
  };
}

/** Calls back whenever messages of `subscriber` may have been missed. */
export function onResubscribed(subscriber: RedisClient, listener: () => void): void {
  subscriber.on('ready', listener);
  if (!(subscriber instanceof Cluster)) return;
  // The connections of a cluster's subscriber come and go by themselves.
  subscriber.on('subscribersReady', listener);
  subscriber.on('-node', listener);
}
