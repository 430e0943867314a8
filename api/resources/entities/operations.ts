import { ROLES } from '../../../shared/contracts/chat-request.ts';
import { listQuerySchema } from '../../../shared/contracts/list-page.ts';
import { exampleList } from '../../openapi/example-list.ts';
import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import {
  constant,
  deletedSchema,
  id,
  nullable,
  object,
  oneOf,
  pageSchema,
  ref,
  text,
  time,
} from '../../openapi/schema.ts';
import type { JsonSchema } from '../../openapi/schema.ts';
import { entityChangesSchema, entityListQuerySchema, entitySchema, newEntitySchema } from './schema.ts';

const entityId = text("The caller's own id.");

export const entitySchemas: Readonly<Record<string, JsonSchema>> = {
  Entity: object({
    id: text('The same as `entity_id`.'),
    object: constant('entity'),
    created_at: time(),
    entity_id: entityId,
    subject: nullable(text()),
    grade: nullable(text()),
    name: nullable(text()),
    metadata: { type: 'object' },
  }),
  EntityList: pageSchema(ref('Entity')),
  DeletedEntity: deletedSchema('entity', entityId),
  EntityMessage: object({
    id: { type: 'string', pattern: '^msg_[0-9A-Za-z]{24}_\\d+$' },
    object: constant('entity.message'),
    created_at: time('When its request was accepted'),
    role: oneOf(ROLES),
    content: text(),
    request_id: id('req', 'The request that stored it.'),
  }),
  EntityMessageList: pageSchema(ref('EntityMessage')),
  DeletedEntityHistory: deletedSchema('entity.history', entityId),
};

const ENTITY_ID = PATH_PARAMETERS.entityId.example;
const ENTITY = {
  id: ENTITY_ID,
  object: 'entity',
  created_at: 1_795_255_200,
  entity_id: ENTITY_ID,
  subject: 'English',
  grade: '5',
  name: 'Mia',
  metadata: { class: '5b' },
};
const MESSAGE = {
  id: 'msg_4fK2mZ8sQ1xY7bN3vC6tR9wE_0',
  object: 'entity.message',
  created_at: 1_795_255_200,
  role: 'user',
  content: 'What is a noun?',
  request_id: PATH_PARAMETERS.requestId.example,
};

/** What the document tells of `/entities`. */
export const entitiesOperations: OperationsOf<
  | 'createEntity'
  | 'listEntities'
  | 'putEntity'
  | 'getEntity'
  | 'updateEntity'
  | 'deleteEntity'
  | 'getEntityHistory'
  | 'deleteEntityHistory'
> = {
  createEntity: {
    tag: 'Entities',
    summary: 'Create an entity',
    description: 'A chat request with an `entity_id` that is not known creates it as well.',
    headers: ['Idempotency-Key'],
    body: { name: 'NewEntity', schema: newEntitySchema },
    answers: { 201: json('The entity.', ref('Entity'), ['Idempotent-Replayed']) },
    examples: {
      full: {
        summary: 'With what applies to its conversations',
        body: { entity_id: 'pupil-8', subject: 'English', grade: '5', name: 'Mia', metadata: { class: '5b' } },
        status: 201,
        answer: { ...ENTITY, id: 'pupil-8', entity_id: 'pupil-8' },
      },
      bare: {
        summary: 'The id alone',
        body: { entity_id: 'pupil-9' },
        status: 201,
        answer: {
          ...ENTITY,
          ...{ id: 'pupil-9', entity_id: 'pupil-9', subject: null, grade: null, name: null, metadata: {} },
        },
      },
    },
  },
  listEntities: {
    tag: 'Entities',
    summary: 'List entities',
    query: [entityListQuerySchema],
    answers: { 200: json('A page of entities.', ref('EntityList')) },
    examples: { first: { query: { limit: 50, order: 'asc' }, status: 200, answer: exampleList(ENTITY) } },
  },
  putEntity: {
    tag: 'Entities',
    summary: 'Create or replace an entity',
    description: 'What is left out of the body is taken away; the history stays.',
    body: { name: 'EntityFields', schema: entitySchema },
    answers: { 200: json('The entity after it.', ref('Entity')), 201: json('The entity is made.', ref('Entity')) },
    examples: {
      replace: {
        body: { subject: 'English', grade: '5', name: 'Mia', metadata: { class: '5b' } },
        status: 200,
        answer: ENTITY,
      },
    },
  },
  getEntity: {
    tag: 'Entities',
    summary: 'Look an entity up',
    answers: { 200: json('The entity.', ref('Entity')) },
    examples: { one: { status: 200, answer: ENTITY } },
  },
  updateEntity: {
    tag: 'Entities',
    summary: 'Change an entity',
    description: '`null` takes a field away; what is left out stays.',
    body: { name: 'EntityChanges', schema: entityChangesSchema },
    answers: { 200: json('The entity after it.', ref('Entity')) },
    examples: {
      next_grade: { body: { grade: '6', name: null }, status: 200, answer: { ...ENTITY, grade: '6', name: null } },
    },
  },
  deleteEntity: {
    tag: 'Entities',
    summary: 'Delete an entity with its history',
    answers: { 200: json('It is deleted.', ref('DeletedEntity')) },
    examples: { one: { status: 200, answer: { id: ENTITY_ID, object: 'entity', deleted: true } } },
  },
  getEntityHistory: {
    tag: 'Entities',
    summary: 'List what is remembered of an entity',
    description: 'The 50 most recent messages.',
    query: [listQuerySchema],
    answers: { 200: json('A page of messages.', ref('EntityMessageList')) },
    examples: { all: { query: { order: 'asc', limit: 50 }, status: 200, answer: exampleList(MESSAGE) } },
  },
  deleteEntityHistory: {
    tag: 'Entities',
    summary: 'Forget the history of an entity',
    answers: { 200: json('It is forgotten.', ref('DeletedEntityHistory')) },
    examples: { one: { status: 200, answer: { id: ENTITY_ID, object: 'entity.history', deleted: true } } },
  },
};
