import { setTimeout as pause } from 'node:timers/promises';

const POLL_MS = 20;

/** Waits for a condition. Resolves with whether it came true in time; rejects when the suite is interrupted. */
export async function until(
  check: () => boolean | Promise<boolean>,
  { timeoutMs, signal, pollMs = POLL_MS }: { timeoutMs: number; signal: AbortSignal; pollMs?: number },
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    signal.throwIfAborted();
    if (await check()) return true;
    if (performance.now() > deadline) return false;
    await pause(pollMs, undefined, { signal });
  }
}
