import { withTimeLimit } from '../../lifecycle/clock.ts';
import type { RedisClient } from './connection.ts';

/** Two renewals of a lease and some: by then a worker that lives has shown it (workers/pipeline/lease/lease.ts). */
const BACK_MS = 5_000;

/** Knows whether Redis came back a moment ago. `client` is connected already; only what follows is an outage. */
export function watchReconnects(client: RedisClient): { hasReconnectedRecently(withinMs?: number): boolean } {
  let backAt = -Infinity;
  client.on('ready', () => {
    backAt = performance.now();
  });
  return {
    hasReconnectedRecently: (withinMs = BACK_MS) => client.status !== 'ready' || performance.now() - backAt < withinMs,
  };
}

/** Redis's clock, by which all times of a request go; milliseconds since the epoch. */
export async function serverTimeMs(client: RedisClient): Promise<number> {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

/** With Redis away a caller gets its 503 within 2 s. */
const CALL_MS = 1_500;

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
