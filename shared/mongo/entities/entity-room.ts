import type { Connection } from 'mongoose';

import type { Space } from '../../contracts/space.ts';
import { ServiceError } from '../../errors/service-error.ts';
import { collection } from '../collection.ts';

/** Without deleted entities. */
export interface EntityCountRow {
  /** Tenant and mode. */
  _id: string;
  tenantId: string;
  entities: number;
  /** Of ids and callers' descriptions; a history has at most 50 messages, whose requests were paid. */
  bytes: number;
}

export const entityCountModel = collection<EntityCountRow>('entity_counts');

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
 * Bounds a space's entities. A look precedes the write and the count follows it, so concurrent calls may pass the bound
 * by what they bring, and a process that dies in between leaves its entity uncounted.
 */
export function createEntityRoom(connection: Connection, most = ENTITIES_MAX) {
  const counts = entityCountModel(connection);
  const idOf = ({ tenantId, mode }: Space) => `${tenantId} ${mode}`;

  return {
    /** Throws `conflict` if the space has no room for a new entity, or for more text of one that it has. */
    async assertFree(space: Space, isNew = true): Promise<void> {
      const row = await counts.findById(idOf(space)).lean();
      if (row === null) return;
      const isCrowded = isNew && row.entities >= most.entities;
      if (!isCrowded && row.bytes < most.bytes) return;
      const what = isCrowded ? 'as many entities' : 'as much text of entities';
      throw new ServiceError('conflict', `The account has ${what} as it may; delete entities that are not needed.`, {
        param: 'entity_id',
      });
    },

    /** Negative for what has gone. Ignores failures: what they would count is stored already. */
    async note(space: Space, { entities, bytes }: EntityAmount): Promise<void> {
      const update = { $inc: { entities, bytes }, $setOnInsert: { tenantId: space.tenantId } };
      await counts.updateOne({ _id: idOf(space) }, update, { upsert: true }).catch(() => undefined);
    },
  };
}
