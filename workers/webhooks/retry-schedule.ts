const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** How long after one attempt the next one comes (docs/spec/contract.md section 6); the first comes at once. */
const RETRY_DELAYS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const;

export const ATTEMPTS_MAX = RETRY_DELAYS_MS.length + 1;

/** At most this part of a delay is added to it, so that receivers that failed together are not tried again together. */
const JITTER = 0.1;

/**
 * When a delivery is attempted again after `failed` failed attempts (from 1); milliseconds since the epoch. Undefined: no
 * more. `chance` is at least 0 and below 1.
 */
export function nextAttemptAt(failed: number, now: number, chance: number): number | undefined {
  const delay = RETRY_DELAYS_MS[failed - 1];
  return delay === undefined ? undefined : now + Math.round(delay * (1 + JITTER * chance));
}

const FAILING_MAX_MS = 5 * 24 * HOUR;

/** A receiver of which no attempt has succeeded for some time. */
export interface FailingReceiver {
  /** When the first of the failed attempts began; milliseconds since the epoch. */
  failingSince: number;
  /** Failed attempts since then. */
  failures: number;
}

/**
 * Whether a receiver has failed for so long that its webhook is disabled. At least as many attempts must have failed as one
 * delivery has: where events are rare, two failures a week apart say little.
 */
export function isGivenUp({ failingSince, failures }: FailingReceiver, now: number): boolean {
  return now - failingSince >= FAILING_MAX_MS && failures >= ATTEMPTS_MAX;
}
