import { withTimeLimit } from '../lifecycle/clock.ts';
import type { RedisClient } from './connection.ts';
import { RedisTimeoutError } from './redis-faults.ts';

/** By the server of `key`, whose clock times its requests: `TIME` has no key, so a cluster would ask any server. */
export async function serverTimeUs(client: RedisClient, key: string): Promise<number> {
  const [seconds, micros] = (await client.eval("return redis.call('TIME')", 1, key)) as [string, string];
  return Number(seconds) * 1_000_000 + Number(micros);
}

export const serverTimeMs = async (client: RedisClient, key: string): Promise<number> =>
  Math.floor((await serverTimeUs(client, key)) / 1000);

/** Without Redis a caller gets 503 within 2 s. */
export const CALL_MS = 1_500;

export type TimeLimit = <Result>(call: Promise<Result>) => Promise<Result>;

/** Calls that no caller awaits wait until Redis is back. */
export const unlimited: TimeLimit = (call) => call;

/**
 * Rejects after `timeoutMs` from now; the call may still happen. ioredis counts only from when it sends a command, so
 * one that waits for a connection, or behind a silent pipeline, would wait longer.
 */
export function inTime<Result>(call: Promise<Result>, timeoutMs = CALL_MS): Promise<Result> {
  return withTimeLimit(call, timeoutMs, 'Command timed out', RedisTimeoutError);
}

/**
 * Waits briefly for an answer of Redis. While one is missing nothing more is asked: it would wait, too, and all of it
 * would be repeated to a server that takes no writes for hours.
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
