const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** How long after one attempt the next one comes (docs/spec/contract.md section 6); the first comes at once. */
const RETRY_DELAYS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const;

export const ATTEMPTS_MAX = RETRY_DELAYS_MS.length + 1;

/** Receivers that fail together should not be asked again together: up to a tenth is added. */
const JITTER = 0.1;

/** When a delivery that has failed `failed` times is tried again; undefined: no more. `chance` is from 0 up to 1. */
export function nextAttemptAt(failed: number, now: number, chance: number): number | undefined {
  const delay = RETRY_DELAYS_MS[failed - 1];
  return delay === undefined ? undefined : now + Math.round(delay * (1 + JITTER * chance));
}

const FAILING_MAX_MS = 5 * 24 * HOUR;

/** What is known of a receiver that has answered nothing well since. */
export interface FailingReceiver {
  failingSince: number;
  /** Failed attempts since then. */
  failures: number;
}

/**
 * Whether a receiver has failed for long enough to be left alone. One whose events are rare has at least a whole
 * delivery's attempts before that: two failures a week apart say little.
 */
export function isGivenUp({ failingSince, failures }: FailingReceiver, now: number): boolean {
  return now - failingSince >= FAILING_MAX_MS && failures >= ATTEMPTS_MAX;
}
