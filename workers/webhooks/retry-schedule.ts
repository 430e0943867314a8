const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The delays between attempts (docs/spec.md#webhooks); the first attempt is made at once. */
const RETRY_DELAYS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const;

export const ATTEMPTS_MAX = RETRY_DELAYS_MS.length + 1;

/** The largest fraction added to a delay, so that receivers that failed together are not retried together. */
const JITTER = 0.1;

/**
 * When a delivery is attempted again after `failed` failed attempts (from 1); milliseconds since the epoch. Undefined:
 * never. `chance` is at least 0 and below 1.
 */
export function nextAttemptAt(failed: number, now: number, chance: number): number | undefined {
  const delay = RETRY_DELAYS_MS[failed - 1];
  return delay === undefined ? undefined : now + Math.round(delay * (1 + JITTER * chance));
}

const FAILING_MAX_MS = 5 * 24 * HOUR;

/** A receiver for which no attempt has succeeded for some time. */
export interface FailingReceiver {
  /** When the first of the failed attempts began; milliseconds since the epoch. */
  failingSince: number;
  /** Failed attempts since then. */
  failures: number;
}

/**
 * Whether a receiver has failed for so long that its webhook is disabled. At least as many attempts must have failed as
 * one delivery gets: if events are rare, two failures a week apart mean little.
 */
export function isGivenUp({ failingSince, failures }: FailingReceiver, now: number): boolean {
  return now - failingSince >= FAILING_MAX_MS && failures >= ATTEMPTS_MAX;
}
