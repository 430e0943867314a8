import type { Logger } from '../shared/logging/logger.ts';
import type { RedisClient } from '../shared/redis/connection.ts';
import type { Keyspace } from '../shared/redis/keyspace.ts';
import { inTime } from '../shared/redis/time-limits.ts';
import { repeat } from '../shared/lifecycle/clock.ts';

/**
 * The way of one worker to MongoDB. A worker that alone cannot reach MongoDB is cut off: it takes no jobs and leads nothing, as
 * others can. Where nobody reaches MongoDB, nobody is cut off, and all go on as they can.
 *
 * Every worker pings MongoDB, and writes its name into Redis where it got an answer. The name of another worker means that
 * MongoDB is there.
 */
export type MongoPath = ReturnType<typeof watchMongoPath>;

export interface MongoPathDeps {
  ping: () => Promise<unknown>;
  redis: RedisClient;
  keyspace: Keyspace;
  workerId: string;
  random: () => number;
  log: Logger;
}

const PING_MS = 1_500;
const EVERY_MS = 2_000;
const RETRY_MS = 1_000;
/** Two in a row; with the pauses this takes 6 s, and the leases are given up within 10 s. */
const FAILURES_MAX = 2;
/** Longer than it takes any worker to ping once more. */
const REACHED_MS = 5_000;
const STAND_BACK_MS = 10_000;
const STAND_BACK_MORE_MS = 20_000;

export function watchMongoPath({ ping, redis, keyspace, workerId, random, log }: MongoPathDeps) {
  const listeners: (() => void)[] = [];
  let failures = 0;
  let isCutOff = false;
  let leadsFrom = -Infinity;

  async function isReachedByAnother(): Promise<boolean> {
    const reachedBy = await inTime(redis.get(keyspace.mongoReached)).catch(() => null);
    return reachedBy !== null && reachedBy !== workerId;
  }

  /** Resolves with the pause until the next look. */
  async function look(): Promise<number> {
    const isReached = await inTime(ping(), PING_MS).then(
      () => true,
      () => false,
    );
    failures = isReached ? 0 : failures + 1;
    if (isReached) void redis.set(keyspace.mongoReached, workerId, 'PX', REACHED_MS).catch(() => undefined);
    const wasCutOff = isCutOff;
    isCutOff = failures >= FAILURES_MAX && (await isReachedByAnother());
    if (isCutOff) leadsFrom = performance.now() + STAND_BACK_MS + random() * STAND_BACK_MORE_MS;
    if (isCutOff === wasCutOff) return isReached ? EVERY_MS : RETRY_MS;
    if (isCutOff) {
      log.error('MongoDB answers other workers and not this one, which takes no requests and leads nothing meanwhile.');
      for (const listener of listeners) listener();
    } else log.info('This worker is not cut off from MongoDB any more.');
    return isReached ? EVERY_MS : RETRY_MS;
  }

  const looking = repeat(
    look,
    (pauseMs = RETRY_MS) => pauseMs,
    () => undefined,
  );
  return {
    isCutOff: (): boolean => isCutOff,
    /** False while this worker is cut off, and for 10 to 30 s after: a path that comes and goes must not lead. */
    mayLead: (): boolean => performance.now() >= leadsFrom,
    /** Called when this worker is cut off. */
    onCutOff: (listener: () => void): void => void listeners.push(listener),
    stop: looking.stop,
  };
}
