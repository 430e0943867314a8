import { pageOf, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { ProviderRepository, ProviderRow } from '../../../shared/mongo/routing/provider-repository.ts';
import type { TierRepository } from '../../../shared/mongo/routing/tier-repository.ts';
import type { BreakerStore } from '../../../shared/redis/stores/breaker-store.ts';
import type { CapacityStore } from '../../../shared/redis/stores/capacity-store.ts';
import type { ProviderTests } from '../../../shared/redis/stores/provider-tests.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { ROUTED_TIERS } from '../../../shared/contracts/chat-request.ts';
import {
  created,
  defineAdminEndpoint,
  ok,
  exampleList,
  json,
  jsonBody,
  listQuery,
  optionalJsonBody,
} from '../../contract/endpoint.ts';
import { found } from '../../contract/path-parameters.ts';
import {
  assertProviderName,
  findProvider,
  providerChangesSchema,
  providerSchema,
  providerTestSchema,
  toProviderChanges,
  toProviderSettings,
} from './provider-settings.ts';
import type { ProviderRules } from './provider-settings.ts';
import {
  deletedProviderSchema,
  PROVIDER_TEST_EXAMPLE,
  providerTestResourceSchema,
  providerResource,
} from './providers-resource.ts';
import type { ProviderStates } from './providers-resource.ts';

export interface ProvidersDeps {
  providers: ProviderRepository;
  /** `PROVIDER_ALLOW_HTTP`. */
  providerRules: Omit<ProviderRules, 'keyPrefix'>;
  keyPrefix: string;
  tiers: TierRepository;
  breakers: BreakerStore;
  capacities: CapacityStore;
  providerTests: ProviderTests;
  clock: Clock;
}

/** Providers can be administered while Redis is unavailable; the states of breakers and capacities are then unknown. */
async function statesOf({ breakers, capacities, tiers }: ProvidersDeps): Promise<ProviderStates | undefined> {
  const targets = (await Promise.all(ROUTED_TIERS.map((tier) => tiers.current(tier)))).flatMap(
    (row) => row?.targets ?? [],
  );
  try {
    const [breakerStates, capacityStates] = await Promise.all([breakers.readAll(), capacities.readAll()]);
    return {
      breakers: breakerStates,
      capacities: capacityStates,
      targetCeiling: (provider, model) =>
        targets.find((target) => target.provider === provider && target.model === model && target.maxInFlight)
          ?.maxInFlight ?? undefined,
    };
  } catch {
    return undefined;
  }
}

const listProviders = defineAdminEndpoint({
  method: 'GET',
  path: '/providers',
  tag: 'Routing',
  summary: 'List providers',
  query: listQuery,
  answers: { 200: json('A page of providers.', providerResource.listSchema) },
  examples: { all: { query: { order: 'asc' }, status: 200, answer: exampleList(providerResource.example) } },
  async handle({ query }, deps: ProvidersDeps) {
    const rows = pageOf(await deps.providers.all(), query, (row) => row._id);
    const states = await statesOf(deps);
    return ok(toListPage(rows, query.limit, (row) => providerResource.of(row, states)));
  },
});

const getProvider = defineAdminEndpoint({
  method: 'GET',
  path: '/providers/:provider',
  tag: 'Routing',
  summary: 'Retrieve a provider',
  answers: { 200: json('The provider.', providerResource.schema) },
  examples: { one: { status: 200, answer: providerResource.example } },
  async handle({ params }, deps: ProvidersDeps) {
    const provider = await findProvider(deps.providers, params.provider);
    return ok(providerResource.of(provider, await statesOf(deps)));
  },
});

const putProvider = defineAdminEndpoint({
  method: 'PUT',
  path: '/providers/:provider',
  tag: 'Routing',
  summary: 'Create or replace a provider',
  description:
    'Without `api_key` a provider keeps its key; null removes it. Where `kind` or the origin of `base_url` changes, `api_key` must be given again, or as null. Plain http is for private hosts.',
  body: jsonBody('ProviderSettings', providerSchema),
  answers: {
    200: json('The replaced provider.', providerResource.schema),
    201: json('The created provider.', providerResource.schema),
  },
  examples: {
    replace: {
      body: { kind: 'openai', base_url: 'https://api.openai.com/v1', api_key: 'sk-example' },
      status: 200,
      answer: providerResource.example,
    },
  },
  async handle({ params, body }, deps: ProvidersDeps) {
    const { provider: name } = params;
    assertProviderName(name);
    const { providers, providerRules, keyPrefix, clock } = deps;
    const settings = toProviderSettings(body, { ...providerRules, keyPrefix });
    const put = await providers.put(name, () => settings, clock.now());
    // The known ceiling may be of another server; if this fails, it is found anew while calls are made.
    await deps.capacities.forget(name).catch(() => undefined);
    const resource = providerResource.of(put.provider, await statesOf(deps));
    return put.created ? created(resource) : ok(resource);
  },
});

const updateProvider = defineAdminEndpoint({
  method: 'PATCH',
  path: '/providers/:provider',
  tag: 'Routing',
  summary: 'Update a provider',
  description:
    'What is not named stays, also within `breaker`. Where `kind` or the origin of `base_url` changes, `api_key` must be given again, or as null.',
  body: jsonBody('ProviderChanges', providerChangesSchema),
  answers: { 200: json('The updated provider.', providerResource.schema) },
  examples: {
    places: { body: { max_in_flight: 8 }, status: 200, answer: { ...providerResource.example, max_in_flight: 8 } },
  },
  async handle({ params: { provider: name }, body }, deps: ProvidersDeps) {
    const { providers, providerRules, keyPrefix, clock, capacities } = deps;
    await findProvider(providers, name);
    const rules = { ...providerRules, keyPrefix };
    const decide = (before?: ProviderRow) => toProviderChanges(found(before, 'provider'), body, rules);
    const { provider } = await providers.put(name, decide, clock.now());
    // The known ceiling may be of another server, or of another setting.
    if ('base_url' in body || 'kind' in body || 'max_in_flight' in body)
      await capacities.forget(name).catch(() => undefined);
    return ok(providerResource.of(provider, await statesOf(deps)));
  },
});

const deleteProvider = defineAdminEndpoint({
  method: 'DELETE',
  path: '/providers/:provider',
  tag: 'Routing',
  summary: 'Delete a provider',
  description: 'A provider that is a target of a tier is 409.',
  answers: { 200: json('The provider is deleted.', deletedProviderSchema) },
  errors: ['conflict'],
  examples: {},
  async handle({ params }, deps: ProvidersDeps) {
    const { _id: name } = await findProvider(deps.providers, params.provider);
    const { isRemoved, users } = await deps.tiers.removeProvider(name);
    if (users.length > 0) {
      throw new ServiceError(
        'conflict',
        `The provider is a target of ${users.join(' and ')}; take it out of the targets first.`,
      );
    }
    found(isRemoved || undefined, 'provider');
    // A later provider with this name must start with a closed breaker; if this fails, the old breaker heals by its
    // probes.
    await deps.breakers.forget(name).catch(() => undefined);
    await deps.capacities.forget(name).catch(() => undefined);
    return ok({ id: name, object: 'provider', deleted: true });
  },
});

/** Throws where no tier has a target of the provider. */
async function firstModel(tiers: TierRepository, provider: string): Promise<string> {
  const rows = await Promise.all(ROUTED_TIERS.map((tier) => tiers.current(tier)));
  const target = rows.flatMap((row) => row?.targets ?? []).find((each) => each.provider === provider);
  if (target !== undefined) return target.model;
  throw new ServiceError('invalid_request', '`model` is required, because no tier has a target of this provider.', {
    param: 'model',
  });
}

const testProvider = defineAdminEndpoint({
  method: 'POST',
  path: '/providers/:provider/test',
  tag: 'Routing',
  summary: 'Test a provider',
  description:
    'A worker sends the provider one short chat with the stored settings, past its breaker, and says what came of it within 30 seconds. Nothing is charged here.',
  body: optionalJsonBody('ProviderTest', providerTestSchema),
  answers: { 200: json('The result, also of a call that failed.', providerTestResourceSchema) },
  errors: ['model_unavailable'],
  examples: { model: { body: { model: 'sim' }, status: 200, answer: PROVIDER_TEST_EXAMPLE } },
  async handle({ params, body, requestId }, { providers, tiers, providerTests }: ProvidersDeps) {
    const { _id: name } = await findProvider(providers, params.provider);
    const model = body.model ?? (await firstModel(tiers, name));
    const result = await providerTests.run({ id: requestId, provider: name, model });
    if (result !== undefined) return ok({ id: name, object: 'provider.test', ...result });
    throw new ServiceError('model_unavailable', 'No worker has made the test; GET /admin/v1/processes lists them.');
  },
});

/** Providers of models (docs/spec.md#administration). */
export const providersEndpoints = {
  listProviders,
  getProvider,
  putProvider,
  updateProvider,
  testProvider,
  deleteProvider,
};
