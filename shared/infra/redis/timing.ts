import { withTimeLimit } from '../../lifecycle/clock.ts';
import type { RedisClient } from './connection.ts';

/**
 * The clock of the server that has `key`, by which all times of its requests go; milliseconds since the epoch. `TIME`
 * has no key, so a cluster client would ask any server.
 */
export async function serverTimeMs(client: RedisClient, key: string): Promise<number> {
  const [seconds, micros] = (await client.eval("return redis.call('TIME')", 1, key)) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

/** With Redis away a caller gets its 503 within 2 s. */
export const CALL_MS = 1_500;

/** How long a store's calls may take. */
export type TimeLimit = <Result>(call: Promise<Result>) => Promise<Result>;

/** For a process that nobody waits for: it waits until Redis is back. */
export const unlimited: TimeLimit = (call) => call;

/**
 * Gives up on a call after a time, counted from now. ioredis limits a command from when it is sent; one that waits
 * behind a pipeline that gets no answer, or for a connection, would wait longer. The call may still happen.
 */
export function inTime<Result>(call: Promise<Result>, timeoutMs = CALL_MS): Promise<Result> {
  // The words of ioredis's own time limit.
  return withTimeLimit(call, timeoutMs, 'Command timed out');
}
