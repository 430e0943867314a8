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
  integer,
  listOf,
  named,
  nullable,
  number,
  object,
  oneOf,
  pageSchema,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { toBreakerBody } from './provider-settings.ts';

const fields = {
  id: text('The same as `name`.'),
  object: constant('provider'),
  created_at: time(),
  name: text(),
  kind: oneOf(PROVIDER_KINDS),
  base_url: text(),
  has_api_key: boolean('The key itself is never shown.'),
  timeout_ms: integer(undefined, 1),
  first_token_timeout_ms: integer(
    'Silence before the first text of a stream, for a prompt that takes no time to read. For each 3,000 tokens of the prompt it has as much again, up to four times in all.',
    1,
  ),
  max_retries: integer(undefined, 0),
  breaker: object({
    window_ms: integer('The failures of this time count.', 1),
    min_attempts: integer('The breaker opens after at least this many calls.', 1),
    failure_ratio: number('The breaker opens at this share of failures.'),
    open_ms: integer('How long it stays open at first.', 1),
    max_open_ms: integer('How long it stays open at most.', 1),
  }),
  breaker_state: nullable(oneOf(['closed', 'open', 'half_open'], 'Null while Redis cannot be reached.')),
  max_in_flight: nullable(integer('Calls at once, as it is set; null: found by model.', 1)),
  capacity: nullable(
    listOf(
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
    ),
  ),
  updated_at: time('Time of the latest change'),
};
export const providerResourceSchema = named('Provider', object(fields));
export const providerListSchema = named('ProviderList', pageSchema(providerResourceSchema));
export const deletedProviderSchema = named('DeletedProvider', deletedSchema('provider', text()));

/** The fields never include the credential. */
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

export function toProviderResource(row: ProviderRow, states: ProviderStates | undefined) {
  return {
    id: row._id,
    object: 'provider',
    created_at: toSeconds(row.createdAt),
    name: row._id,
    kind: row.kind,
    base_url: row.baseUrl,
    has_api_key: row.encryptedApiKey !== undefined,
    timeout_ms: row.timeoutMs,
    first_token_timeout_ms: row.firstTokenTimeoutMs,
    max_retries: row.maxRetries,
    breaker: toBreakerBody(row.breaker ?? DEFAULT_BREAKER),
    breaker_state: states === undefined ? null : (states.breakers.breakers.get(row._id)?.state ?? 'closed'),
    max_in_flight: row.maxInFlight ?? null,
    capacity: states === undefined ? null : toCapacityResource(row, states),
    updated_at: toSeconds(row.updatedAt),
  } satisfies FieldsOf<typeof fields>;
}

export const PROVIDER_EXAMPLE: ReturnType<typeof toProviderResource> = {
  id: 'openai',
  object: 'provider',
  created_at: 1_795_219_200,
  name: 'openai',
  kind: 'openai',
  base_url: 'https://api.openai.com/v1',
  has_api_key: true,
  timeout_ms: 600_000,
  first_token_timeout_ms: 60_000,
  max_retries: 2,
  breaker: toBreakerBody(DEFAULT_BREAKER),
  breaker_state: 'closed',
  max_in_flight: null,
  capacity: [
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
  updated_at: 1_795_255_200,
};

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
