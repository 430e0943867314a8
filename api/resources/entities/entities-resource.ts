import { ROLES } from '../../../shared/contracts/chat-request.ts';
import { timeOfSeq } from '../../../shared/domain/request-times.ts';
import type { Entity, StoredMessage } from '../../../shared/mongo/entities/entity-repository.ts';
import {
  constant,
  deletedSchema,
  id,
  named,
  nullable,
  object,
  oneOf,
  pageSchema,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const entityId = text("The caller's own id.");

const entityFields = {
  id: text('The same as `entity_id`.'),
  object: constant('entity'),
  created_at: time(),
  entity_id: entityId,
  subject: nullable(text()),
  grade: nullable(text()),
  name: nullable(text()),
  metadata: { type: 'object' },
};
export const entitySchema = named('Entity', object(entityFields));
export const entityListSchema = named('EntityList', pageSchema(entitySchema));
export const deletedEntitySchema = named('DeletedEntity', deletedSchema('entity', entityId));

/** An entity is known by the caller's own id, so that is its `id` too. */
export function toEntityResource(entity: Entity) {
  return {
    id: entity.entityId,
    object: 'entity',
    created_at: toSeconds(entity.createdAt),
    entity_id: entity.entityId,
    subject: entity.subject ?? null,
    grade: entity.grade ?? null,
    name: entity.name ?? null,
    metadata: entity.metadataJson === undefined ? {} : (JSON.parse(entity.metadataJson) as object),
  } satisfies FieldsOf<typeof entityFields>;
}

const messageFields = {
  id: { type: 'string', pattern: '^msg_[0-9A-Za-z]{24}_\\d+$' },
  object: constant('entity.message'),
  created_at: time('Time at which its request was accepted'),
  role: oneOf(ROLES),
  content: text(),
  request_id: id('req', 'The request that stored it.'),
};
export const entityMessageListSchema = named(
  'EntityMessageList',
  pageSchema(named('EntityMessage', object(messageFields))),
);
export const deletedHistorySchema = named('DeletedEntityHistory', deletedSchema('entity.history', entityId));

type Numbered<Message> = Message & { id: string };

/**
 * Gives each message an id of its own: its request's, and its place in what that request has stored. The reply, the last,
 * is 0: a full history forgets the beginning of a turn first, and what stays must keep its id.
 */
export function numberMessages<Message extends Pick<StoredMessage, 'requestId'>>(
  messages: readonly Message[],
): Numbered<Message>[] {
  const counts = new Map<string, number>();
  const numbered = messages.toReversed().map((message) => {
    const place = counts.get(message.requestId) ?? 0;
    counts.set(message.requestId, place + 1);
    return { ...message, id: `${message.requestId.replace(/^req_/, 'msg_')}_${place}` };
  });
  return numbered.reverse();
}

export function toMessageResource({ id, seq, role, content, requestId }: Numbered<StoredMessage>) {
  return {
    id,
    object: 'entity.message',
    created_at: toSeconds(timeOfSeq(seq)),
    role,
    content,
    request_id: requestId,
  } satisfies FieldsOf<typeof messageFields>;
}

export const ENTITY_EXAMPLE: ReturnType<typeof toEntityResource> = {
  id: PATH_PARAMETERS.entityId.example,
  object: 'entity',
  created_at: 1_795_255_200,
  entity_id: PATH_PARAMETERS.entityId.example,
  subject: 'English',
  grade: '5',
  name: 'Mia',
  metadata: { class: '5b' },
};

export const MESSAGE_EXAMPLE: ReturnType<typeof toMessageResource> = {
  id: 'msg_4fK2mZ8sQ1xY7bN3vC6tR9wE_1',
  object: 'entity.message',
  created_at: 1_795_255_200,
  role: 'user',
  content: 'What is a noun?',
  request_id: PATH_PARAMETERS.requestId.example,
};
