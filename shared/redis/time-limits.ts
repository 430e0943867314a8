import { withTimeLimit } from '../lifecycle/clock.ts';
import type { RedisClient } from './connection.ts';
import { RedisTimeoutError } from './redis-faults.ts';

/**
 * The clock of the server that has `key`, by which all times of its requests go; microseconds since the epoch. `TIME`
 * has no key, so a cluster client would ask any server.
 */
export async function serverTimeUs(client: RedisClient, key: string): Promise<number> {
  const [seconds, micros] = (await client.eval("return redis.call('TIME')", 1, key)) as [string, string];
  return Number(seconds) * 1_000_000 + Number(micros);
}

/** The same in milliseconds. */
export const serverTimeMs = async (client: RedisClient, key: string): Promise<number> =>
  Math.floor((await serverTimeUs(client, key)) / 1000);

/** If Redis is away a caller gets its 503 within 2 s. */
export const CALL_MS = 1_500;

/** Limits how long a store's calls may take. */
export type TimeLimit = <Result>(call: Promise<Result>) => Promise<Result>;

/** For calls that no caller waits for: they wait until Redis is back. */
export const unlimited: TimeLimit = (call) => call;

/**
 * Rejects if a call takes longer than `timeoutMs` from now; the call may still happen. ioredis limits a command only from
 * when it is sent, so one that waits for a connection, or behind a pipeline without an answer, would wait longer.
 */
export function inTime<Result>(call: Promise<Result>, timeoutMs = CALL_MS): Promise<Result> {
  return withTimeLimit(call, timeoutMs, 'Command timed out', RedisTimeoutError);
}

/**
 * Waits for an answer of Redis for a moment. While one is missing nothing more is asked: it would wait behind, and all of it
 * is sent again and again to a server that takes no writes for hours.
 */
export function createBriefCalls(callMs = CALL_MS) {
  let unanswered = 0;
  return {
    isWaiting: () => unanswered > 0,
    async make<T>(send: () => Promise<T>): Promise<T> {
      if (unanswered > 0) throw new RedisTimeoutError('Redis has not answered an earlier call');
      const call = send();
      try {
        return await inTime(call, callMs);
      } catch (error) {
        unanswered += 1;
        const settle = () => (unanswered -= 1);
        call.then(settle, settle);
        throw error;
      }
    },
  };
}
