import { TIERS } from '../../shared/contracts/chat-request.ts';
import type { Tier } from '../../shared/contracts/chat-request.ts';
import { defineEndpoint, ok, json } from '../contract/endpoint.ts';
import { constant, listOf, named, object, oneOf, text, time } from '../contract/json-schema.ts';
import { found } from '../contract/path-parameters.ts';

/** OpenAI's list has dates, so the tiers get the date of the service's first version. */
const TIERS_SINCE = Date.UTC(2026, 10, 21) / 1000;

const modelSchema = named(
  'Model',
  object({
    id: oneOf(TIERS),
    object: constant('model'),
    created: time('Time since which the tier exists'),
    owned_by: text(),
  }),
);

const modelListSchema = named('ModelList', object({ object: constant('list'), data: listOf(modelSchema) }));

const toModel = (id: Tier) => ({ id, object: 'model', created: TIERS_SINCE, owned_by: 'parley' });

const MODELS = { object: 'list', data: TIERS.map(toModel) };

/** The model tiers, in the format of OpenAI's models (docs/spec.md#openais-client). */
export const modelsEndpoints = {
  listModels: defineEndpoint({
    method: 'GET',
    path: '/models',
    scopes: 'any',
    tag: 'Models',
    summary: 'List model tiers',
    description: "In the form of OpenAI's list. Every valid key may read it.",
    answers: { 200: json('The tiers.', modelListSchema) },
    examples: { all: { status: 200, answer: MODELS } },
    handle: () => ok(MODELS),
  }),

  getModel: defineEndpoint({
    method: 'GET',
    path: '/models/:tier',
    scopes: 'any',
    tag: 'Models',
    summary: 'Retrieve a model tier',
    description: "In the form of OpenAI's model. Every valid key may read it.",
    answers: { 200: json('The tier.', modelSchema) },
    examples: { one: { status: 200, answer: toModel('mobius') } },
    handle: ({ params }) => {
      const tier = TIERS.find((id) => id === params.tier);
      return ok(toModel(found(tier, 'tier')));
    },
  }),
};
