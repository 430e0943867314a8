import type { Entity } from '../../../shared/infra/mongo/entities/entity-repository.ts';
import type { StoredMessage } from '../../../shared/infra/mongo/entities/entity-repository.ts';
import { timeOfSeq } from '../../../shared/domain/requests/acceptance-order.ts';
import { toSeconds } from '../../contract/unix-seconds.ts';

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
  };
}

export type NumberedMessage = StoredMessage & { id: string };

/** Gives each message an id of its own: its request's, and its place in what that request has stored. */
export function numberMessages(messages: readonly StoredMessage[]): NumberedMessage[] {
  const counts = new Map<string, number>();
  return messages.map((message) => {
    const place = counts.get(message.requestId) ?? 0;
    counts.set(message.requestId, place + 1);
    return { ...message, id: `${message.requestId.replace(/^req_/, 'msg_')}_${place}` };
  });
}

export function toMessageResource({ id, seq, role, content, requestId }: NumberedMessage) {
  return {
    id,
    object: 'entity.message',
    created_at: toSeconds(timeOfSeq(seq)),
    role,
    content,
    request_id: requestId,
  };
}
