import type { Connection } from 'mongoose';

import type { Space } from '../../contracts/space.ts';
import { ServiceError } from '../../errors/service-error.ts';
import { collection } from '../collection.ts';

/** Counts the entities of a space, deleted ones left out. */
export interface EntityCountRow {
  /** Tenant and mode. */
  _id: string;
  tenantId: string;
  entities: number;
  /** Of ids and of what callers have said of them; a history has at most 50 messages, and its requests were paid. */
  bytes: number;
}

export const entityCountModel = collection<EntityCountRow>('entity_counts');

/** The texts of an entity that count. */
interface CountedTexts {
  entityId: string;
  subject?: string | undefined;
  grade?: string | undefined;
  name?: string | undefined;
  metadataJson?: string | undefined;
}

type EntityAmount = Pick<EntityCountRow, 'entities' | 'bytes'>;

/** docs/spec.md#entities. */
export const ENTITIES_MAX: EntityAmount = { entities: 1_000_000, bytes: 1024 ** 3 };

/** Of what an entity has besides its conversation. */
export function bytesOf(row: CountedTexts): number {
  const { entityId, subject = '', grade = '', name = '', metadataJson = '' } = row;
  return Buffer.byteLength(entityId + subject + grade + name + metadataJson);
}

/**
 * Bounds what a space may have of entities. A look comes before a write and the count after it, so calls at the same time
 * may pass the bound by what they bring, and a process that dies in between leaves its entity uncounted.
 */
export function createEntityRoom(connection: Connection, most = ENTITIES_MAX) {
  const counts = entityCountModel(connection);
  const idOf = ({ tenantId, mode }: Space) => `${tenantId} ${mode}`;

  return {
    /** Throws `conflict` if the space has no room for a new entity, or for more text of one that it has. */
    async assertFree(space: Space, isNew = true): Promise<void> {
      const row = await counts.findById(idOf(space)).lean();
      const isCrowded = isNew && row !== null && row.entities >= most.entities;
      if (row === null || (!isCrowded && row.bytes < most.bytes)) return;
      const what = isCrowded ? 'as many entities' : 'as much text of entities';
      throw new ServiceError('conflict', `The account has ${what} as it may; delete entities that are not needed.`, {
        param: 'entity_id',
      });
    },

    /** Counts what has come; negative: what has gone. Failures are forgotten: what they would count is there already. */
    async note(space: Space, { entities, bytes }: EntityAmount): Promise<void> {
      const update = { $inc: { entities, bytes }, $setOnInsert: { tenantId: space.tenantId } };
      await counts.updateOne({ _id: idOf(space) }, update, { upsert: true }).catch(() => undefined);
    },
  };
}
