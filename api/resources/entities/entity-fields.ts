import Joi from 'joi';

import {
  CHAT_LIMITS,
  entityIdSchema,
  metadataSchema,
  storedContextSchema,
  storedText,
} from '../../../shared/contracts/chat-request.ts';
import { createListQueryReader, createListQuerySchema } from '../../../shared/contracts/list-page.ts';
import type { ListQuery } from '../../../shared/contracts/list-page.ts';
import { checkAgainst, wellFormedJson } from '../../../shared/contracts/parse.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { EntityChanges, EntityFields } from '../../../shared/mongo/entities/entity-repository.ts';
import type { QueryRule } from '../../contract/endpoint.ts';

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

export interface EntityBody {
  subject?: string | null;
  grade?: string | null;
  name?: string | null;
  metadata?: object | null;
}

/** `POST /entities`. */
export const newEntitySchema = Joi.object<EntityBody & { entity_id: string }, true>({
  ...fields,
  entity_id: entityId.required(),
}).required();

/** `PUT /entities/{entity_id}`: omitted fields are removed. */
export const entityFieldsSchema = Joi.object<EntityBody & { entity_id?: string }, true>({
  ...fields,
  entity_id: entityId,
}).required();

/** `PATCH /entities/{entity_id}`: null removes a field. */
export const entityChangesSchema = Joi.object<EntityBody, true>(fields).required();

const pathSchema = Joi.object<{ entity_id: string }, true>({ entity_id: entityId });

/** An id has up to 256 code points of at most two UTF-16 units each, and may contain any character. */
const entityListQuerySchema = createListQuerySchema({
  charactersMax: 2 * CHAT_LIMITS.entityIdMax,
  anyCharacter: true,
});

/** `GET /entities`. */
export const entityListQuery: QueryRule<ListQuery> = {
  schemas: [entityListQuerySchema],
  read: createListQueryReader(entityListQuerySchema),
};

export function toEntityChanges({ subject, grade, name, metadata }: EntityBody): EntityChanges {
  return { subject, grade, name, metadataJson: metadata ? wellFormedJson(metadata) : metadata };
}

export function toEntityFields(body: EntityBody): EntityFields {
  const given = Object.entries(toEntityChanges(body)).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given);
}

/** Whether an entity can have this id. */
export function isEntityId(text: string): boolean {
  return pathSchema.validate({ entity_id: text }, { convert: false }).error === undefined;
}

/** A body may repeat the id in the path. Throws `invalid_request` if it differs or is invalid. */
export function assertSameEntity(inPath: string, inBody: string | undefined): void {
  checkAgainst(pathSchema, { entity_id: inPath });
  if (inBody === undefined || inBody === inPath) return;
  throw new ServiceError('invalid_request', '`entity_id` must be the one in the path, or be left out.', {
    param: 'entity_id',
  });
}
