import { DEFAULT_BREAKER } from '../../../shared/domain/breaker.ts';
import { PROVIDER_KINDS } from '../../../shared/domain/routing.ts';
import type { ProviderRow } from '../../../shared/mongo/routing/provider-repository.ts';
import { sumOf } from '../../../shared/domain/capacity.ts';
import type { BreakerSnapshot } from '../../../shared/redis/stores/breaker-store.ts';
import type { CapacitySnapshot } from '../../../shared/redis/stores/capacity-store.ts';
import {
  boolean,
  constant,
  deletedSchema,
  field,
  integer,
  kind,
  listOf,
  named,
  nullable,
  number,
  object,
  oneOf,
  resource,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { toBreakerBody } from './provider-settings.ts';

const capacitySchema = listOf(
  object({
    model: nullable(text('Null: all models together.')),
    source: oneOf(['set', 'found', 'none'], '`none`: the ceiling of the provider as a whole is set.'),
    ceiling: nullable(integer('Calls at once.', 1)),
    in_flight: integer('Calls at the moment.', 0),
    waiting: boolean('Requests wait for a place.'),
    paused_until: nullable(time('The provider asked for a pause until then')),
    requests_per_minute: nullable(integer("The provider's limit, from its headers.", 0)),
    tokens_per_minute: nullable(integer("The provider's limit, from its headers.", 0)),
  }),
  'What the provider has been sent at once lately; null while Redis cannot be reached.',
);

export interface ProviderStates {
  breakers: BreakerSnapshot;
  capacities: CapacitySnapshot;
  /** Ceilings that are set for targets, by provider and model. */
  targetCeiling(provider: string, model: string): number | undefined;
}

function toCapacityResource(row: ProviderRow, { capacities: { now, capacities }, targetCeiling }: ProviderStates) {
  return capacities
    .filter(({ provider, capacity }) => provider === row._id && Object.keys(capacity.shares).length > 0)
    .map(({ model, capacity: { found, shares, pausedUntil, requests, tokens } }) => {
      const set = model === undefined ? (row.maxInFlight ?? undefined) : targetCeiling(row._id, model);
      const isFound = set === undefined && (row.maxInFlight ?? null) === null;
      return {
        model: model ?? null,
        source: set !== undefined ? ('set' as const) : isFound ? ('found' as const) : ('none' as const),
        ceiling: set ?? (isFound ? found : null),
        in_flight: sumOf(shares, 'inFlight'),
        waiting: Object.values(shares).some(({ waits }) => waits),
        paused_until: pausedUntil > now ? Math.ceil(pausedUntil / 1000) : null,
        requests_per_minute: requests?.limit ?? null,
        tokens_per_minute: tokens?.limit ?? null,
      };
    });
}

/** The fields never include the credential. */
export const providerResource = resource<[row: ProviderRow, states: ProviderStates | undefined]>('Provider', {
  id: field(text('The same as `name`.'), 'openai', (row) => row._id),
  object: kind('provider'),
  created_at: field(time(), 1_795_219_200, (row) => toSeconds(row.createdAt)),
  name: field(text(), 'openai', (row) => row._id),
  kind: field(oneOf(PROVIDER_KINDS), 'openai', (row) => row.kind),
  base_url: field(text(), 'https://api.openai.com/v1', (row) => row.baseUrl),
  has_api_key: field(boolean('The key itself is never shown.'), true, (row) => row.encryptedApiKey !== undefined),
  timeout_ms: field(integer(undefined, 1), 600_000, (row) => row.timeoutMs),
  first_token_timeout_ms: field(
    integer(
      'Silence before the first text of a stream, for a prompt that takes no time to read. For each 3,000 tokens of the prompt it has as much again, up to four times in all.',
      1,
    ),
    60_000,
    (row) => row.firstTokenTimeoutMs,
  ),
  max_retries: field(integer(undefined, 0), 2, (row) => row.maxRetries),
  breaker: field(
    object({
      window_ms: integer('The failures of this time count.', 1),
      min_attempts: integer('The breaker opens after at least this many calls.', 1),
      failure_ratio: number('The breaker opens at this share of failures.'),
      open_ms: integer('How long it stays open at first.', 1),
      max_open_ms: integer('How long it stays open at most.', 1),
    }),
    toBreakerBody(DEFAULT_BREAKER),
    (row) => toBreakerBody(row.breaker ?? DEFAULT_BREAKER),
  ),
  breaker_state: field(
    nullable(oneOf(['closed', 'open', 'half_open'], 'Null while Redis cannot be reached.')),
    'closed',
    (row, states) => states && (states.breakers.breakers.get(row._id)?.state ?? 'closed'),
  ),
  max_in_flight: field(
    nullable(integer('Calls at once, as it is set; null: found by model.', 1)),
    null,
    (row) => row.maxInFlight,
  ),
  capacity: field(
    nullable(capacitySchema),
    [
      {
        model: 'gpt-5-mini',
        source: 'found',
        ceiling: 128,
        in_flight: 61,
        waiting: false,
        paused_until: null,
        requests_per_minute: 10_000,
        tokens_per_minute: 2_000_000,
      },
    ],
    (row, states) => states && toCapacityResource(row, states),
  ),
  updated_at: field(time('Time of the latest change'), 1_795_255_200, (row) => toSeconds(row.updatedAt)),
});
export const deletedProviderSchema = named('DeletedProvider', deletedSchema('provider', text()));

const testFields = {
  id: text("The provider's name."),
  object: constant('provider.test'),
  ok: boolean('It answered in full.'),
  status: nullable(integer('Of its answer; null: it gave none.')),
  ms: integer('From the call to its end.', 0),
  model: nullable(text('As the provider names it.')),
  message: text('What to look at; never what the provider wrote.'),
};

export const providerTestResourceSchema = named('ProviderTestResult', object(testFields));

export const PROVIDER_TEST_EXAMPLE = {
  id: 'openai',
  object: 'provider.test',
  ok: false,
  status: 401,
  ms: 212,
  model: null,
  message: 'The provider answered 401 (invalid_api_key): it does not take the `api_key`.',
} satisfies FieldsOf<typeof testFields>;
