import { totalsOf } from '../../../shared/domain/routing/attempt-window.ts';
import { DEFAULT_BREAKER, NEW_BREAKER } from '../../../shared/domain/routing/breaker.ts';
import type { Breaker } from '../../../shared/domain/routing/breaker.ts';
import type { BreakerEvent } from '../../../shared/infra/redis/routing/breaker-store.ts';
import type { ProviderRow } from '../../../shared/infra/mongo/routing/provider-repository.ts';

/** Unix seconds; rounded up, so that nobody who waits until then is early. */
const seconds = (timeMs: number | null) => (timeMs === null ? null : Math.ceil(timeMs / 1000));

/** `recent_errors` of a closed breaker are those in its window, of another one those that opened it and its probes'. */
export function toBreakerResource(row: ProviderRow, breaker: Breaker = NEW_BREAKER, now: number) {
  const { state, reason, since, retryAt, probe, slices } = breaker;
  const oldest = now - (row.breaker ?? DEFAULT_BREAKER).windowMs;
  const errors = state === 'closed' ? totalsOf(slices, oldest).errors : breaker.errors;
  return {
    id: row._id,
    object: 'breaker',
    provider: row._id,
    state,
    reason,
    since: seconds(since),
    retry_at: seconds(retryAt),
    probing: probe !== null && probe.until > now,
    recent_failures: Object.values(errors).reduce((sum, count) => sum + count, 0),
    recent_errors: errors,
  };
}

const TYPES = { open: 'breaker.opened', half_open: 'breaker.half_opened', closed: 'breaker.closed' } as const;

/** Shaped like the body of a webhook: `id`, `type`, `timestamp`, `data`. */
export function toBreakerEventResource({ id, provider, from, to, reason, at, retryAt, errors }: BreakerEvent) {
  return {
    id,
    object: 'breaker.event',
    created_at: Math.floor(at / 1000),
    type: TYPES[to],
    timestamp: new Date(at).toISOString(),
    data: { provider, from, to, reason, retry_at: seconds(retryAt), errors },
  };
}
