import { withTimeLimit } from '../../lifecycle/time-limit.ts';

/** With Redis away a caller gets its 503 within 2 s (docs/architecture/facts.md section 3). */
const CALL_MS = 1_500;

/** How long a store's calls may take. */
export type TimeLimit = <Result>(call: Promise<Result>) => Promise<Result>;

/** For a process that waits for Redis to come back, and nobody waits for it. */
export const unlimited: TimeLimit = (call) => call;

/**
 * Gives up on a call after a time, counted from now. ioredis limits a command from when it is sent; one that waits
 * behind a pipeline that gets no answer, or for a connection, would wait longer. The call may still happen.
 */
export function inTime<Result>(call: Promise<Result>, timeoutMs = CALL_MS): Promise<Result> {
  // The words of ioredis's own time limit.
  return withTimeLimit(call, timeoutMs, 'Command timed out');
}
