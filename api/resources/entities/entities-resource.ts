import { ROLES } from '../../../shared/contracts/chat-request.ts';
import { timeOfSeq } from '../../../shared/domain/request-times.ts';
import type { Entity, StoredMessage } from '../../../shared/mongo/entities/entity-repository.ts';
import {
  deletedSchema,
  field,
  id,
  kind,
  named,
  nullable,
  oneOf,
  resource,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const entityId = text("The caller's own id.");

/** An entity is known by the caller's own id, so that is its `id` too. */
export const entityResource = resource<[entity: Entity]>('Entity', {
  id: field(text('The same as `entity_id`.'), PATH_PARAMETERS.entityId.example, (entity) => entity.entityId),
  object: kind('entity'),
  created_at: field(time(), 1_795_255_200, (entity) => toSeconds(entity.createdAt)),
  entity_id: field(entityId, PATH_PARAMETERS.entityId.example, (entity) => entity.entityId),
  subject: field(nullable(text()), 'English', (entity) => entity.subject),
  grade: field(nullable(text()), '5', (entity) => entity.grade),
  name: field(nullable(text()), 'Mia', (entity) => entity.name),
  metadata: field({ type: 'object' }, { class: '5b' }, ({ metadataJson }) =>
    metadataJson === undefined ? {} : JSON.parse(metadataJson),
  ),
});
export const deletedEntitySchema = named('DeletedEntity', deletedSchema('entity', entityId));
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

export const messageResource = resource<[message: Numbered<StoredMessage>]>('EntityMessage', {
  id: field(
    { type: 'string', pattern: '^msg_[0-9A-Za-z]{24}_\\d+$' },
    'msg_4fK2mZ8sQ1xY7bN3vC6tR9wE_1',
    (message) => message.id,
  ),
  object: kind('entity.message'),
  created_at: field(time('Time at which its request was accepted'), 1_795_255_200, ({ seq }) =>
    toSeconds(timeOfSeq(seq)),
  ),
  role: field(oneOf(ROLES), 'user', (message) => message.role),
  content: field(text(), 'What is a noun?', (message) => message.content),
  request_id: field(
    id('req', 'The request that stored it.'),
    PATH_PARAMETERS.requestId.example,
    ({ requestId }) => requestId,
  ),
});
