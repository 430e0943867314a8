import { ROUTED_TIERS } from '../../shared/contracts/chat-request.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { RoutingCache } from '../../shared/mongo/routing/routing-cache.ts';
import { defineEndpoint, ok, json } from '../contract/endpoint.ts';
import { constant, listOf, named, object, text, time, toSeconds } from '../contract/json-schema.ts';

export interface ModelsDeps {
  routing: RoutingCache;
}

/** OpenAI's list has dates, so the tiers get the date of the service's first version. */
const TIERS_SINCE_MS = Date.UTC(2026, 10, 21);

const modelSchema = named(
  'Model',
  object({
    id: text('A tier, or a name that the administrator publishes.'),
    object: constant('model'),
    created: time('Time since which the model exists'),
    owned_by: text(),
  }),
);

const modelListSchema = named('ModelList', object({ object: constant('list'), data: listOf(modelSchema) }));

const toModel = (id: string, createdAt = TIERS_SINCE_MS) => ({
  id,
  object: 'model',
  created: toSeconds(createdAt),
  owned_by: 'parley',
});

const TIER_MODELS = ROUTED_TIERS.map((tier) => toModel(tier));

function modelsOf({ routing }: ModelsDeps): ReturnType<typeof toModel>[] {
  return [...TIER_MODELS, ...[...routing.current().models].map(([name, { createdAt }]) => toModel(name, createdAt))];
}

/** Tiers and published names, in the format of OpenAI's models (docs/spec.md#openais-client). */
export const modelsEndpoints = {
  listModels: defineEndpoint({
    method: 'GET',
    path: '/models',
    scopes: 'any',
    tag: 'Models',
    summary: 'List models',
    description:
      "The tiers and the names that the administrator publishes, in the form of OpenAI's list. Every valid key may read it.",
    answers: { 200: json('The models.', modelListSchema) },
    examples: { all: { status: 200, answer: { object: 'list', data: TIER_MODELS } } },
    handle: (_call, deps: ModelsDeps) => ok({ object: 'list', data: modelsOf(deps) }),
  }),

  getModel: defineEndpoint({
    method: 'GET',
    path: '/models/*model',
    scopes: 'any',
    tag: 'Models',
    summary: 'Retrieve a model',
    description: "In the form of OpenAI's model. Every valid key may read it.",
    answers: { 200: json('The model.', modelSchema) },
    errors: ['model_not_found'],
    examples: { one: { status: 200, answer: toModel('mobius') } },
    handle: ({ params }, deps: ModelsDeps) => {
      const model = modelsOf(deps).find(({ id }) => id === params.model);
      if (model !== undefined) return ok(model);
      throw new ServiceError('model_not_found', 'There is no such model; GET /models lists those that there are.', {
        param: 'model',
      });
    },
  }),
};
