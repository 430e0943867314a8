import Joi from 'joi';

import { ROUTED_TIERS } from '../../../shared/contracts/chat-request.ts';
import type { RoutedTier } from '../../../shared/contracts/chat-request.ts';
import { pageOf, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type {
  PublishedModelRow,
  PublishedModels,
  TierRepository,
} from '../../../shared/mongo/routing/tier-repository.ts';
import { created, defineAdminEndpoint, exampleList, json, jsonBody, listQuery, ok } from '../../contract/endpoint.ts';
import {
  deletedSchema,
  field,
  kind,
  named,
  nullable,
  object,
  oneOf,
  resource,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import { found } from '../../contract/path-parameters.ts';

export interface PublishedModelsDeps {
  publishedModels: PublishedModels;
  tiers: TierRepository;
  clock: Clock;
}

/** Providers' names of models fit. None needs an escape in JSON: answers repeat the name. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$/;

interface ModelBody {
  tier: RoutedTier;
  target?: { provider: string; model: string } | null;
}

const modelBodySchema = Joi.object<ModelBody, true>({
  tier: Joi.string()
    .valid(...ROUTED_TIERS)
    .required()
    .description('The tier that serves requests for this name, at its rates.'),
  target: Joi.object({ provider: Joi.string().max(63).required(), model: Joi.string().max(512).required() })
    .allow(null)
    .description('The one target of the tier that serves them. Null or absent: all do.'),
}).required();

const modelResource = resource<[row: PublishedModelRow]>('PublishedModel', {
  id: field(text('The name that callers send as `model`.'), 'gpt-4o-mini', (row) => row._id),
  object: kind('published_model'),
  created_at: field(time(), 1_795_219_200, (row) => toSeconds(row.createdAt)),
  tier: field(oneOf(ROUTED_TIERS), 'mobius', (row) => row.tier),
  target: field(nullable(object({ provider: text(), model: text() })), null, (row) => row.target),
  updated_at: field(time('Time of the latest change'), 1_795_255_200, (row) => toSeconds(row.updatedAt)),
});
const deletedModelSchema = named('DeletedPublishedModel', deletedSchema('published_model', text()));

function assertName(name: string): void {
  const refuse = (rule: string) => {
    throw new ServiceError('invalid_request', `The name of a model ${rule}.`, { param: 'name' });
  };
  if (!NAME.test(name)) refuse('has 1 to 128 letters, digits and `. _ : @ / -`, and begins with a letter or a digit');
  if (ROUTED_TIERS.some((tier) => tier === name)) refuse('cannot be that of a tier; tiers need not be published');
}

/** A target that the tier does not have would serve no request. */
async function assertTarget({ tiers }: PublishedModelsDeps, { tier, target }: ModelBody): Promise<void> {
  if (!target) return;
  const targets = (await tiers.current(tier))?.targets ?? [];
  if (targets.some(({ provider, model }) => provider === target.provider && model === target.model)) return;
  throw new ServiceError('invalid_request', `\`target\` must be one of the targets of the tier ${tier}.`, {
    param: 'target',
  });
}

const listPublishedModels = defineAdminEndpoint({
  method: 'GET',
  path: '/models',
  tag: 'Routing',
  summary: 'List published models',
  query: listQuery,
  answers: { 200: json('A page of published models.', modelResource.listSchema) },
  examples: { all: { query: { order: 'asc' }, status: 200, answer: exampleList(modelResource.example) } },
  async handle({ query }, { publishedModels }: PublishedModelsDeps) {
    const rows = pageOf(await publishedModels.all(), query, ({ _id }) => _id);
    return ok(toListPage(rows, query.limit, modelResource.of));
  },
});

const getPublishedModel = defineAdminEndpoint({
  method: 'GET',
  path: '/models/:name',
  tag: 'Routing',
  summary: 'Retrieve a published model',
  answers: { 200: json('The published model.', modelResource.schema) },
  examples: { one: { status: 200, answer: modelResource.example } },
  async handle({ params }, { publishedModels }: PublishedModelsDeps) {
    return ok(modelResource.of(found(await publishedModels.find(params.name), 'name')));
  },
});

const putPublishedModel = defineAdminEndpoint({
  method: 'PUT',
  path: '/models/:name',
  tag: 'Routing',
  summary: 'Publish a model',
  description:
    'Callers of `POST /chat/completions` and `POST /embeddings` may then send the name as `model`, and `GET /models` lists it. Applies to new requests within a second.',
  body: jsonBody('PublishedModelSettings', modelBodySchema),
  answers: {
    200: json('The changed model.', modelResource.schema),
    201: json('The published model.', modelResource.schema),
  },
  examples: { replace: { body: { tier: 'mobius' }, status: 200, answer: modelResource.example } },
  async handle({ params, body }, deps: PublishedModelsDeps) {
    assertName(params.name);
    await assertTarget(deps, body);
    const { tier, target } = body;
    const content = { tier, ...(target ? { target } : {}) };
    const put = await deps.publishedModels.put(params.name, content, deps.clock.now());
    return put.created ? created(modelResource.of(put.row)) : ok(modelResource.of(put.row));
  },
});

const deletePublishedModel = defineAdminEndpoint({
  method: 'DELETE',
  path: '/models/:name',
  tag: 'Routing',
  summary: 'Withdraw a published model',
  description: 'Requests that were accepted under the name are still answered.',
  answers: { 200: json('The model is withdrawn.', deletedModelSchema) },
  examples: {},
  async handle({ params: { name } }, { publishedModels }: PublishedModelsDeps) {
    found((await publishedModels.remove(name)) || undefined, 'name');
    return ok({ id: name, object: 'published_model', deleted: true });
  },
});

/** Names of models that callers may send (docs/spec.md#administration). */
export const publishedModelsEndpoints = {
  listPublishedModels,
  getPublishedModel,
  putPublishedModel,
  deletePublishedModel,
};
