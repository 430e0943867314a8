/**
 * Says when Redis has been away, and when it is back. "Back" is one event: a connection that is ready again, an answer
 * after three seconds without any, or a server that takes writes again. On a cluster each slot has its own: it has a
 * master again that answers, or another one than before, while the slots of other masters go on.
 *
 * A Redis that is back may lack its last second, or everything. So every process then repeats its recent writes
 * (replay-log.ts): ends, admissions taken back, cancellations, published books. Workers renew their leases, claim again
 * what they run, and send missing text. For 5 s nobody takes anything over, so that living workers come first. Scripts
 * are atomic in the append-only file, so whole steps are lost and never half of one.
 *
 * A process that starts then has seen no outage. It asks each shard since when its server has its data (`incarnation`),
 * and waits like the others. A worker that alone was cut off from a server that lives puts nothing back: nothing is
 * lost. Repeating is safe in every case (docs/decisions/0007-redis-data-loss.md).
 */
import { setTimeout as pause } from 'node:timers/promises';

import { Cluster } from 'ioredis';
import type { Redis } from 'ioredis';

import { repeat } from '../lifecycle/clock.ts';
import type { Repeating } from '../lifecycle/clock.ts';
import { mastersBySlot, nameOf, slotOf } from './cluster-slots.ts';
import type { RedisClient } from './connection.ts';
import type { Keyspace } from './keyspace.ts';
import { isRefusing, onTaken } from './retry-refused.ts';
import { defineScript } from './scripts.ts';
import { inTime } from './time-limits.ts';

const LOOK_EVERY_MS = 250;
/** A master that is away for longer may stay away, and its cluster is asked less often. */
const LONG_MS = 30_000;
const LOOK_SELDOM_MS = 1_000;
const ANSWER_MS = 1_000;

/** Slots whose master left at the same time. */
interface Outage {
  slots: Set<number>;
  goneAt: number;
}

/**
 * A cluster client stays `ready` while one of its masters is replaced or gone, and the slots of the other masters go on. A slot
 * is away from the moment at which the connection to its master ends, or at which it has another master, and back when its
 * master answers. `onBack` hears of slots that are back, and for how long they were away at the most.
 */
function watchMasters(cluster: Cluster, onBack: (slots: ReadonlySet<number>, awayMs: number) => void) {
  /** As of the latest refresh: between two, a redirection changes what the client says of other slots, too. */
  let masters = mastersBySlot(cluster);
  const outages = new Set<Outage>();
  let looking: Repeating | undefined;
  let isStopped = false;

  const isOpen = (slot: number) => [...outages].some(({ slots }) => slots.has(slot));

  function begin(isGone: (master: string, slot: number) => boolean): void {
    if (isStopped) return;
    const slots = new Set<number>();
    masters.forEach((master, slot) => {
      if (isGone(master, slot) && !isOpen(slot)) slots.add(slot);
    });
    if (slots.size === 0) return;
    outages.add({ slots, goneAt: performance.now() });
    looking ??= repeat(look, pauseMs, () => undefined);
  }

  /** The shortest one decides: a master that was lost just then is about to be replaced. */
  function pauseMs(): number {
    const isLong = [...outages].every(({ goneAt }) => performance.now() - goneAt > LONG_MS);
    return isLong ? LOOK_SELDOM_MS : LOOK_EVERY_MS;
  }

  async function isMaster(name: string): Promise<boolean> {
    const node = cluster.nodes('master').find((each) => nameOf(each) === name);
    const info = await inTime(node?.info('replication') ?? Promise.resolve(''), ANSWER_MS).catch(() => '');
    return info.includes('role:master');
  }

  async function look(): Promise<void> {
    const names = new Set([...outages].flatMap(({ slots }) => [...slots].map((slot) => masters[slot] ?? '')));
    const answers = await Promise.all([...names].map(async (name) => ((await isMaster(name)) ? [name] : [])));
    const living = new Set(cluster.status === 'ready' ? answers.flat() : []);
    for (const outage of isStopped ? [] : outages) end(outage, living);
    if (outages.size > 0) cluster.refreshSlotsCache();
    else stopLooking();
  }

  function end(outage: Outage, living: ReadonlySet<string>): void {
    const back = new Set([...outage.slots].filter((slot) => living.has(masters[slot] ?? '')));
    if (back.size === 0) return;
    for (const slot of back) outage.slots.delete(slot);
    if (outage.slots.size === 0) outages.delete(outage);
    onBack(back, performance.now() - outage.goneAt);
  }

  function stopLooking(): void {
    void looking?.stop();
    looking = undefined;
  }

  cluster.on('-node', (node: Redis) => {
    if (node.options.readOnly !== true) begin((master) => master === nameOf(node));
  });
  cluster.on('refresh', () => {
    const before = masters;
    masters = mastersBySlot(cluster);
    begin((master, slot) => before[slot] !== undefined && before[slot] !== master);
  });
  return {
    /** Whether a slot, or any of them, has no master that answers. */
    isAway: (slot: number | undefined): boolean =>
      cluster.status !== 'ready' || (slot === undefined ? outages.size > 0 : isOpen(slot)),
    stop(): void {
      isStopped = true;
      stopLooking();
    },
  };
}

/** More than a renewal interval of leases: by then every living worker has renewed (workers/pipeline/lease.ts). */
const BACK_MS = 5_000;
/** By then whoever missed something in Redis has said so. */
const REMEMBERED_MS = 30_000;
const MEET_AGAIN_MS = 1_000;
/** A single server is asked so often, and is away when so many times in a row it has not answered yet. */
const ASK_EVERY_MS = 1_000;
const UNANSWERED_MAX = 3;

/**
 * Knows when Redis is or was away. On a cluster each shard has its own outages, those of the master of its slot; where no shard
 * is named, any of them counts.
 */
export interface Outages {
  /** Whether Redis came back a moment ago, or is away. So it is with a shard that this process has only just met. */
  hasReconnectedRecently(shard: number | undefined, withinMs?: number): boolean;
  /** For how long Redis was away before it came back, within the last half minute; else 0. Milliseconds, rounded up. */
  lastAwayMs(shard: number): number;
  /**
   * Asks a shard for how long its server has had its data. A process that starts when Redis is back has seen no outage, and
   * waits like the others. Resolves once the answer is there; until then the shard counts as back just now.
   */
  meet(shard: number): Promise<void>;
  /** Called whenever Redis is back, with what tells for which shards: it may have lost their last writes. */
  onReturn(listener: (isBack: IsBack) => void): void;
  stop(): void;
}

/** Always true where no shard is named. */
export type IsBack = (shard: number | undefined) => boolean;

interface Return {
  at: number;
  awayMs: number;
  /** Undefined: all of them. */
  slots: ReadonlySet<number> | undefined;
}

/** `client` is connected already. An outage before that is known of shards that were met. */
export function watchOutages(client: RedisClient, keyspace: Keyspace): Outages {
  /** Those of the last half minute, the latest first. */
  let returns: Return[] = [];
  const listeners: ((isBack: IsBack) => void)[] = [];
  const slots = new Map<number, number>();
  const readAge = defineScript(client, 'incarnation', ['window', 'put-back']);
  /** By shard that was met: when its server got its data (`performance.now`); Infinity while that is not known. */
  const metSince = new Map<number, number>();
  let isStopped = false;

  async function meet(shard: number): Promise<void> {
    if (!metSince.has(shard)) metSince.set(shard, Infinity);
    while (!isStopped) {
      try {
        const age = Number(await readAge([keyspace.shard(shard).incarnation], []));
        metSince.set(shard, performance.now() - age);
        return;
      } catch {
        // A server that is away, or takes no writes, is asked again.
        await pause(MEET_AGAIN_MS, undefined, { ref: false });
      }
    }
  }

  function isYoung(shard: number | undefined, withinMs: number): boolean {
    const births = shard === undefined ? [...metSince.values()] : [metSince.get(shard) ?? -Infinity];
    return births.some((since) => performance.now() - since < withinMs);
  }

  function slotOfShard(shard: number): number {
    const slot = slots.get(shard) ?? slotOf(keyspace.shard(shard).tag);
    slots.set(shard, slot);
    return slot;
  }

  const isOf = ({ slots: back }: Return, shard: number | undefined) =>
    shard === undefined || back === undefined || back.has(slotOfShard(shard));

  function announce(back: Return['slots'], awayMs: number): void {
    const at = performance.now();
    const latest = { at, awayMs: Math.ceil(awayMs), slots: back };
    returns = [latest, ...returns.filter((each) => at - each.at < REMEMBERED_MS)];
    for (const listener of listeners) listener((shard) => isOf(latest, shard));
    // It may be another server, and who starts from now on has to know since when.
    for (const shard of metSince.keys()) if (isOf(latest, shard)) void meet(shard);
  }

  const returnsOf = (shard: number | undefined, withinMs: number) =>
    returns.filter((each) => performance.now() - each.at < withinMs && isOf(each, shard));

  const outage = client instanceof Cluster ? watchMasters(client, announce) : watchConnection(client, announce);
  // Leases and locks run out while a server refuses writes, as they do while it is away.
  onTaken(client, (slot, refusedMs) => {
    announce(client instanceof Cluster ? new Set([slot]) : undefined, refusedMs);
  });

  function isAway(shard: number | undefined): boolean {
    const slot = shard === undefined || !(client instanceof Cluster) ? undefined : slotOfShard(shard);
    return outage.isAway(slot) || isRefusing(client, slot);
  }

  return {
    hasReconnectedRecently: (shard, withinMs = BACK_MS) =>
      isAway(shard) || returnsOf(shard, withinMs).length > 0 || isYoung(shard, withinMs),
    // It may have come back to refuse what it was sent: it was away twice.
    lastAwayMs: (shard) => returnsOf(shard, REMEMBERED_MS).reduce((sum, { awayMs }) => sum + awayMs, 0),
    onReturn: (listener) => listeners.push(listener),
    meet,
    stop() {
      isStopped = true;
      outage.stop();
    },
  };
}

/**
 * A server that hangs closes nothing: it is away once it has answered nothing for a while. Nobody could renew a lease
 * meanwhile, as if its connections had broken.
 */
function watchConnection(client: Redis, announce: (slots: undefined, awayMs: number) => void) {
  let isAsking = false;
  /** Counted, not timed: a process that slept itself has missed no answer. */
  let unanswered = 0;
  const isSilent = () => unanswered >= UNANSWERED_MAX;
  const back = (missed: number) => {
    announce(undefined, (missed + 1) * ASK_EVERY_MS);
  };

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
    const missed = unanswered;
    unanswered = hasAnswered ? 0 : missed + 1;
    if (missed >= UNANSWERED_MAX && hasAnswered) back(missed);
  }

  client.on('ready', () => {
    const missed = unanswered;
    unanswered = 0;
    back(missed);
  });
  const asking = setInterval(() => void ask(), ASK_EVERY_MS);
  asking.unref();
  return {
    isAway: () => client.status !== 'ready' || isSilent(),
    stop() {
      clearInterval(asking);
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
