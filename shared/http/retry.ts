import { setTimeout as pause } from 'node:timers/promises';

import pRetry from 'p-retry';

export interface RetryPolicy {
  /** Further tries after the first. */
  retries: number;
  /** Whether another try may follow. Asked once for each failure, except the last. */
  mayRetry: (error: Error) => boolean;
  /** A wait that the server asked for, in addition to the back-off; milliseconds. */
  retryAfterMs: (error: Error) => number;
  onRetry?: (error: Error, attempt: number) => void;
  signal: AbortSignal;
}

/** Two tries later, at most 0.9 s, the next target is asked: a failover takes less than a second. */
const FIRST_BACKOFF_MS = 150;
const BACKOFF_MAX_MS = 5_000;

/** Runs `attempt` until it succeeds, with exponential back-off and jitter. Rejects with the last error, or the abort's reason. */
export function withRetries<T>(attempt: (number: number) => Promise<T>, policy: RetryPolicy): Promise<T> {
  return pRetry(attempt, {
    retries: policy.retries,
    minTimeout: FIRST_BACKOFF_MS,
    maxTimeout: BACKOFF_MAX_MS,
    randomize: true,
    signal: policy.signal,
    shouldRetry: async ({ error, attemptNumber }) => {
      if (!policy.mayRetry(error)) return false;
      policy.onRetry?.(error, attemptNumber);
      const wait = policy.retryAfterMs(error);
      // Where the signal ends the wait, p-retry rejects with the signal's own reason.
      if (wait > 0) await pause(wait, undefined, { signal: policy.signal }).catch(() => undefined);
      return true;
    },
  });
}
