import Joi from 'joi';

import {
  codePoints,
  contextTextSchema,
  entityIdSchema,
  metadataSchema,
} from '../../../shared/contracts/chat-request.ts';
import { createListQueryReader, createListQuerySchema } from '../../../shared/contracts/list-page.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { EntityChanges, EntityFields } from '../../../shared/infra/mongo/entities/entity-repository.ts';

const NAME_CHARACTERS_MAX = 256;

const fields = {
  subject: contextTextSchema.allow(null).description('Applied to requests with this entity that name no subject.'),
  grade: contextTextSchema.allow(null).description('Applied to requests with this entity that name no grade.'),
  name: Joi.string().allow('', null).custom(codePoints(NAME_CHARACTERS_MAX)).description('For people.'),
  metadata: metadataSchema.allow(null).description('Any JSON object up to 16 KiB, at most 5 levels deep.'),
};

const entityId = entityIdSchema.description("The caller's own id of the entity, 1 to 256 characters.");

/** `POST /entities`. */
export const newEntitySchema = Joi.object({ ...fields, entity_id: entityId.required() }).required();

/** `PUT /entities/{entity_id}`: what is left out is taken away. */
export const entitySchema = Joi.object({ ...fields, entity_id: entityId }).required();

const pathSchema = Joi.object({ entity_id: entityId });

/** `PATCH /entities/{entity_id}`: null takes a field away. */
export const entityChangesSchema = Joi.object(fields).required();

/** `GET /entities`. An id has up to 256 code points, each of at most two UTF-16 units; any character may be in it. */
export const entityListQuerySchema = createListQuerySchema({ charactersMax: 512, anyCharacter: true });
export const parseEntityListQuery = createListQueryReader(entityListQuerySchema);

interface EntityBody {
  entity_id?: string;
  subject?: string | null;
  grade?: string | null;
  name?: string | null;
  metadata?: object | null;
}

function toChanges({ subject, grade, name, metadata }: EntityBody): EntityChanges {
  return { subject, grade, name, metadataJson: metadata ? JSON.stringify(metadata) : metadata };
}

function toFields(body: EntityBody): EntityFields {
  const given = Object.entries(toChanges(body)).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given);
}

/** Throws `invalid_request`. */
export function parseNewEntity(input: unknown): { entityId: string; fields: EntityFields } {
  checkAgainst(newEntitySchema, input);
  // The schema has just checked every field of this shape.
  const body = input as EntityBody & { entity_id: string };
  return { entityId: body.entity_id, fields: toFields(body) };
}

/** `id` is the one in the path: a body may repeat it. Throws `invalid_request`. */
export function parseEntity(input: unknown, id: string): EntityFields {
  checkAgainst(pathSchema, { entity_id: id });
  checkAgainst(entitySchema, input);
  // As above.
  const body = input as EntityBody;
  if (body.entity_id !== undefined && body.entity_id !== id) {
    throw new ServiceError('invalid_request', '`entity_id` must be the one in the path, or be left out.', {
      param: 'entity_id',
    });
  }
  return toFields(body);
}

/** Throws `invalid_request`. */
export function parseEntityChanges(input: unknown): EntityChanges {
  checkAgainst(entityChangesSchema, input);
  // As above.
  return toChanges(input as EntityBody);
}
