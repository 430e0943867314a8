import { SIZE_COUNT } from '../../shared/domain/capacity.ts';
import type { CapacityReport } from '../../shared/domain/capacity.ts';

/** A report of a worker that has nothing to say but `more`. */
export const quiet = (worker: string, more: Partial<CapacityReport> = {}): CapacityReport => ({
  worker,
  inFlight: 0,
  used: 0,
  waits: false,
  leaves: false,
  pending: 0,
  late: 0,
  newLate: 0,
  newLateMs: 0,
  epoch: 0,
  firsts: Array.from({ length: SIZE_COUNT }, () => ({ count: 0, ms: 0 })),
  served: 0,
  throttled: 0,
  newThrottled: 0,
  retryAfterMs: 0,
  limits: {},
  spent: { requests: 0, tokens: 0 },
  callTokens: 0,
  ...more,
});
