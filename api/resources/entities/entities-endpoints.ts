import Joi from 'joi';

import {
  pageOf,
  toListPage,
  createListQueryReader,
  createListQuerySchema,
} from '../../../shared/contracts/list-page.ts';
import type { ListQuery } from '../../../shared/contracts/list-page.ts';
import {
  CHAT_LIMITS,
  entityIdSchema,
  metadataSchema,
  storedContextSchema,
  storedText,
} from '../../../shared/contracts/chat-request.ts';
import { checkAgainst, wellFormedJson } from '../../../shared/contracts/parse.ts';
import { HISTORY_MESSAGES_MAX } from '../../../shared/domain/history.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import type { Pseudonyms } from '../../../shared/domain/pseudonyms.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type {
  EntityRepository,
  EntityChanges,
  EntityFields,
} from '../../../shared/mongo/entities/entity-repository.ts';
import type { RequestEraser } from '../../../shared/requests/request-eraser.ts';
import type { AcceptanceClock } from '../../../shared/requests/record-store.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { created, defineEndpoint, ok, exampleList, json, jsonBody, listQuery } from '../../contract/endpoint.ts';
import type { QueryRule } from '../../contract/endpoint.ts';
import { found } from '../../contract/path-parameters.ts';
import type { TenantEvents } from '../../contract/tenant-events.ts';
import { contextOf, createdBefore } from '../../http/request-context.ts';
import {
  deletedEntitySchema,
  deletedHistorySchema,
  entityResource,
  messageResource,
  numberMessages,
} from './entities-resource.ts';

const NAME_CHARACTERS_MAX = 256;

const METADATA_KIB_MAX = CHAT_LIMITS.metadataBytesMax / 1024;

const fields = {
  subject: storedContextSchema.description('Applied to requests with this entity that name no subject.'),
  grade: storedContextSchema.description('Applied to requests with this entity that name no grade.'),
  name: storedText(NAME_CHARACTERS_MAX).allow('', null).description('For people.'),
  metadata: metadataSchema
    .allow(null)
    .description(`Any JSON object up to ${METADATA_KIB_MAX} KiB, at most ${CHAT_LIMITS.metadataDepthMax} levels deep.`),
};

const entityId = entityIdSchema.description(
  `The caller's own id of the entity, 1 to ${CHAT_LIMITS.entityIdMax} characters.`,
);

interface EntityBody {
  subject?: string | null;
  grade?: string | null;
  name?: string | null;
  metadata?: object | null;
}

const newEntitySchema = Joi.object<EntityBody & { entity_id: string }, true>({
  ...fields,
  entity_id: entityId.required(),
}).required();

/** `PUT /entities/{entity_id}`: omitted fields are removed. */
const entityFieldsSchema = Joi.object<EntityBody & { entity_id?: string }, true>({
  ...fields,
  entity_id: entityId,
}).required();

/** `PATCH /entities/{entity_id}`: null removes a field. */
const entityChangesSchema = Joi.object<EntityBody, true>(fields).required();

const pathSchema = Joi.object<{ entity_id: string }, true>({ entity_id: entityId });

/** An id has up to 256 code points of at most two UTF-16 units each, and may contain any character. */
const entityListQuerySchema = createListQuerySchema({ charactersMax: 2 * CHAT_LIMITS.entityIdMax, anyCharacter: true });

const entityListQuery: QueryRule<ListQuery> = {
  schemas: [entityListQuerySchema],
  read: createListQueryReader(entityListQuerySchema),
};

function toEntityChanges({ subject, grade, name, metadata }: EntityBody): EntityChanges {
  return { subject, grade, name, metadataJson: metadata ? wellFormedJson(metadata) : metadata };
}

function toEntityFields(body: EntityBody): EntityFields {
  const given = Object.entries(toEntityChanges(body)).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given);
}

function isEntityId(text: string): boolean {
  return pathSchema.validate({ entity_id: text }, { convert: false }).error === undefined;
}

/** A body may repeat the id in the path. Throws `invalid_request` if it differs or is invalid. */
function assertSameEntity(inPath: string, inBody: string | undefined): void {
  checkAgainst(pathSchema, { entity_id: inPath });
  if (inBody === undefined || inBody === inPath) return;
  throw new ServiceError('invalid_request', '`entity_id` must be the one in the path, or be left out.', {
    param: 'entity_id',
  });
}

export interface EntitiesDeps {
  entities: EntityRepository;
  acceptanceClock: AcceptanceClock;
  entityRequests: RequestEraser;
  compliance: { pseudonyms: Pseudonyms };
  events: TenantEvents;
  clock: Clock;
}

/** The moment of a deletion, both in the order of acceptance and as a time. */
async function momentOf({ acceptanceClock, clock }: EntitiesDeps, { shard }: Principal) {
  return { seq: await acceptanceClock.read(shard), now: clock.now() };
}

const createEntity = defineEndpoint({
  method: 'POST',
  path: '/entities',
  scopes: ['entities'],
  tag: 'Entities',
  summary: 'Create an entity',
  description: 'A chat request with an unknown `entity_id` creates the entity as well.',
  body: jsonBody('NewEntity', newEntitySchema),
  answers: { 201: json('The entity.', entityResource.schema) },
  examples: {
    full: {
      summary: 'With what applies to its conversations',
      body: { entity_id: 'pupil-8', subject: 'English', grade: '5', name: 'Mia', metadata: { class: '5b' } },
      status: 201,
      answer: { ...entityResource.example, id: 'pupil-8', entity_id: 'pupil-8' },
    },
    bare: {
      summary: 'The id alone',
      body: { entity_id: 'pupil-9' },
      status: 201,
      answer: {
        ...entityResource.example,
        id: 'pupil-9',
        entity_id: 'pupil-9',
        subject: null,
        grade: null,
        name: null,
        metadata: {},
      },
    },
  },
  async handle({ res, principal, body }, { entities, clock }: EntitiesDeps) {
    const { entity_id: entityId } = body;
    const fields = toEntityFields(body);
    const createdAt = clock.now();
    const run = contextOf(res).run?.name;
    const before = await createdBefore(res, () => entities.findCreated(principal, entityId, run ?? ''));
    if (before !== undefined) return created(entityResource.of(before));
    const made = { createdAt, ...(run === undefined ? {} : { createdUnder: run }) };
    if (!(await entities.insert(principal, entityId, fields, made))) {
      throw new ServiceError('conflict', 'There is an entity with this entity_id; change it with PUT or PATCH.', {
        param: 'entity_id',
      });
    }
    return created(entityResource.of({ entityId, createdAt, ...fields }));
  },
});

const listEntities = defineEndpoint({
  method: 'GET',
  path: '/entities',
  scopes: ['entities'],
  tag: 'Entities',
  summary: 'List entities',
  query: entityListQuery,
  answers: { 200: json('A page of entities.', entityResource.listSchema) },
  examples: { first: { query: { limit: 50, order: 'asc' }, status: 200, answer: exampleList(entityResource.example) } },
  async handle({ principal, query }, { entities }: EntitiesDeps) {
    return ok(toListPage(await entities.list(principal, query), query.limit, entityResource.of));
  },
});

const putEntity = defineEndpoint({
  method: 'PUT',
  path: '/entities/:entityId',
  scopes: ['entities'],
  tag: 'Entities',
  summary: 'Create or replace an entity',
  description: 'A field that the body omits is removed; the history stays.',
  body: jsonBody('EntityFields', entityFieldsSchema),
  errors: ['conflict'],
  answers: {
    200: json('The replaced entity.', entityResource.schema),
    201: json('The created entity.', entityResource.schema),
  },
  examples: {
    replace: {
      body: { subject: 'English', grade: '5', name: 'Mia', metadata: { class: '5b' } },
      status: 200,
      answer: entityResource.example,
    },
  },
  async handle({ principal, params, body }, { entities, clock }: EntitiesDeps) {
    const { entityId } = params;
    assertSameEntity(entityId, body.entity_id);
    const outcome = await entities.put(principal, entityId, toEntityFields(body), clock.now());
    const resource = entityResource.of(found(await entities.find(principal, entityId), 'entityId'));
    return outcome === 'created' ? created(resource) : ok(resource);
  },
});

const getEntity = defineEndpoint({
  method: 'GET',
  path: '/entities/:entityId',
  scopes: ['entities'],
  tag: 'Entities',
  summary: 'Retrieve an entity',
  answers: { 200: json('The entity.', entityResource.schema) },
  examples: { one: { status: 200, answer: entityResource.example } },
  async handle({ principal, params }, { entities }: EntitiesDeps) {
    return ok(entityResource.of(found(await entities.find(principal, params.entityId), 'entityId')));
  },
});

const updateEntity = defineEndpoint({
  method: 'PATCH',
  path: '/entities/:entityId',
  scopes: ['entities'],
  tag: 'Entities',
  summary: 'Update an entity',
  description: '`null` removes a field; a field that the body omits stays.',
  body: jsonBody('EntityChanges', entityChangesSchema),
  errors: ['conflict'],
  answers: { 200: json('The updated entity.', entityResource.schema) },
  examples: {
    next_grade: {
      body: { grade: '6', name: null },
      status: 200,
      answer: { ...entityResource.example, grade: '6', name: null },
    },
  },
  async handle({ principal, params, body }, { entities }: EntitiesDeps) {
    const entity = await entities.update(principal, params.entityId, toEntityChanges(body));
    return ok(entityResource.of(found(entity, 'entityId')));
  },
});

const deleteEntity = defineEndpoint({
  method: 'DELETE',
  path: '/entities/:entityId',
  scopes: ['entities'],
  tag: 'Entities',
  summary: 'Delete an entity with its history',
  answers: { 200: json('The entity is deleted.', deletedEntitySchema) },
  examples: { one: { status: 200, answer: { id: entityResource.example.id, object: 'entity', deleted: true } } },
  async handle({ principal, params, actor }, deps: EntitiesDeps) {
    const { entityId } = params;
    found(isEntityId(entityId) || undefined, 'entityId');
    const { entities, entityRequests, compliance } = deps;
    const { shard, tenantId } = principal;
    // An unknown entity that a request names leaves a tombstone for two days. The list is read after the moment of the
    // deletion: whatever was accepted before is in it.
    const mayCome = async () =>
      (await entityRequests.ofEntity(shard, tenantId, compliance.pseudonyms.of(tenantId, entityId))).length > 0;
    const isRemoved = await entities.remove(principal, entityId, await momentOf(deps, principal), mayCome);
    found(isRemoved || undefined, 'entityId');
    await deps.events.emit(actor, 'entity.deleted', entityId);
    return ok({ id: entityId, object: 'entity', deleted: true });
  },
});

const getEntityHistory = defineEndpoint({
  method: 'GET',
  path: '/entities/:entityId/history',
  scopes: ['entities'],
  tag: 'Entities',
  summary: "List the messages of an entity's history",
  description: `The ${HISTORY_MESSAGES_MAX} most recent messages.`,
  query: listQuery,
  answers: { 200: json('A page of messages.', messageResource.listSchema) },
  examples: { all: { query: { order: 'asc', limit: 50 }, status: 200, answer: exampleList(messageResource.example) } },
  async handle({ principal, params, query }, { entities }: EntitiesDeps) {
    let page: { id: string; place: number }[] = [];
    const choose = (requestIds: readonly string[]) => {
      const all = numberMessages(requestIds.map((requestId, place) => ({ requestId, place })));
      page = pageOf(all, query, ({ id }) => id);
      return { from: Math.min(...page.map(({ place }) => place)), count: page.length };
    };
    const part = found(await entities.history(principal, params.entityId, choose), 'entityId');
    const inOrder = query.order === 'asc' ? part : part.toReversed();
    const messages = inOrder.map((message, index) => ({ ...message, id: page[index]?.id ?? '' }));
    return ok(toListPage(messages, query.limit, messageResource.of));
  },
});

const deleteEntityHistory = defineEndpoint({
  method: 'DELETE',
  path: '/entities/:entityId/history',
  scopes: ['entities'],
  tag: 'Entities',
  summary: 'Delete the history of an entity',
  answers: { 200: json('The history is deleted.', deletedHistorySchema) },
  examples: {
    one: { status: 200, answer: { id: entityResource.example.id, object: 'entity.history', deleted: true } },
  },
  async handle({ principal, params, actor }, deps: EntitiesDeps) {
    const { entityId } = params;
    const isRemoved = await deps.entities.removeHistory(principal, entityId, await momentOf(deps, principal));
    found(isRemoved || undefined, 'entityId');
    await deps.events.emit(actor, 'entity.history_deleted', entityId);
    return ok({ id: entityId, object: 'entity.history', deleted: true });
  },
});

/** The conversation partners of a tenant (docs/spec.md#entities). */
export const entitiesEndpoints = {
  createEntity,
  listEntities,
  putEntity,
  getEntity,
  updateEntity,
  deleteEntity,
  getEntityHistory,
  deleteEntityHistory,
};
