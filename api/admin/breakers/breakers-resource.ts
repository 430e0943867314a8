import { totalsOf, DEFAULT_BREAKER, NEW_BREAKER } from '../../../shared/domain/breaker.ts';
import type { Breaker } from '../../../shared/domain/breaker.ts';
import type { ProviderRow } from '../../../shared/mongo/routing/provider-repository.ts';
import type { BreakerEvent } from '../../../shared/redis/stores/breaker-store.ts';
import {
  boolean,
  constant,
  field,
  integer,
  kind,
  named,
  nullable,
  object,
  oneOf,
  pageSchema,
  resource,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';

/** Unix seconds, rounded up so that a caller who waits until then is not early. */
const seconds = (timeMs: number | null) => (timeMs === null ? null : Math.ceil(timeMs / 1000));

const stateSchema = oneOf(['closed', 'open', 'half_open']);
const errorCounts = { type: 'object', description: 'How often each kind of failure.', additionalProperties: integer() };

const breakerFields = {
  id: text("The provider's name."),
  object: constant('breaker'),
  provider: text(),
  state: stateSchema,
  reason: nullable(text('Why it is in this state.')),
  since: nullable(time('Time of the latest change')),
  retry_at: nullable(time('Time of the next probe')),
  probing: boolean('A probe is in progress.'),
  recent_calls: integer('Of its window; of a breaker that is not closed, the failures alone.', 0),
  recent_failures: integer(undefined, 0),
  recent_errors: errorCounts,
};
export const breakerSchema = named('Breaker', object(breakerFields));
export const breakerListSchema = named('BreakerList', pageSchema(breakerSchema));

/** A closed breaker's `recent_errors` are those in its window; otherwise those that opened it, and its probes'. */
export function toBreakerResource(row: ProviderRow, breaker: Breaker = NEW_BREAKER, now: number) {
  const { state, reason, since, retryAt, probe, slices } = breaker;
  const oldest = now - (row.breaker ?? DEFAULT_BREAKER).windowMs;
  const isClosed = state === 'closed';
  const known = totalsOf(slices, oldest);
  const errors = isClosed ? known.errors : breaker.errors;
  const failures = Object.values(errors).reduce((sum, count) => sum + count, 0);
  return {
    id: row._id,
    object: 'breaker',
    provider: row._id,
    state,
    reason,
    since: seconds(since),
    retry_at: seconds(retryAt),
    probing: probe !== null && probe.until > now,
    recent_calls: isClosed ? known.attempts : failures,
    recent_failures: failures,
    recent_errors: errors,
  } satisfies FieldsOf<typeof breakerFields>;
}

const TYPES = { open: 'breaker.opened', half_open: 'breaker.half_opened', closed: 'breaker.closed' } as const;

/** Shaped like the body of a webhook: `id`, `type`, `timestamp`, `data`. */
export const breakerEventResource = resource<[event: BreakerEvent]>('BreakerEvent', {
  id: field(text(), '1795255200000-0', (event) => event.id),
  object: kind('breaker.event'),
  created_at: field(time('Time of the change'), 1_795_255_200, (event) => toSeconds(event.at)),
  type: field(oneOf(Object.values(TYPES)), TYPES.open, (event) => TYPES[event.to]),
  timestamp: field({ type: 'string', format: 'date-time' }, '2026-11-21T10:00:00.000Z', ({ at }) =>
    new Date(at).toISOString(),
  ),
  data: field(
    object({
      provider: text(),
      from: stateSchema,
      to: stateSchema,
      reason: nullable(text()),
      retry_at: nullable(time('Time of the next probe')),
      errors: errorCounts,
    }),
    { provider: 'openai', from: 'closed', to: 'open', reason: null, retry_at: 1_795_255_230, errors: { timeout: 12 } },
    ({ provider, from, to, reason, retryAt, errors }) => ({
      provider,
      from,
      to,
      reason,
      retry_at: seconds(retryAt),
      errors,
    }),
  ),
});

export const BREAKER_EXAMPLE = {
  id: 'openai',
  object: 'breaker',
  provider: 'openai',
  state: 'closed',
  reason: null,
  since: null,
  retry_at: null,
  probing: false,
  recent_calls: 0,
  recent_failures: 0,
  recent_errors: {},
};
