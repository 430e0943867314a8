import type { Connection } from 'mongoose';

import type { ListQuery } from '../../contracts/list-page.ts';
import type { SearchedSpace } from '../../contracts/space.ts';
import { newId } from '../../lifecycle/ids.ts';
import { collection, listRows, inSpace } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import type { RowOfSpace } from '../collection.ts';

/** Never changed, but for erased entities, and never deleted. */
export interface AuditRow extends RowOfSpace {
  _id: string;
  createdAt: number;
  /** An API key's id, or `administrator`. */
  actor: string;
  action: string;
  target: string;
  requestId: string;
  /** Holds no secret and no conversation text. */
  details: Record<string, unknown>;
}

export const auditModel = collection<AuditRow>('audit_log', [[{ tenantId: 1, createdAt: -1 }]]);

export type AuditEntry = Omit<AuditRow, '_id'> & Partial<Pick<AuditRow, '_id'>>;

/** Append-only. */
export type AuditRepository = ReturnType<typeof createAuditRepository>;

export function createAuditRepository(connection: Connection) {
  const audit = auditModel(connection);
  return {
    /** Safe to repeat for an entry with an id. */
    async append(entry: AuditEntry): Promise<void> {
      try {
        await audit.create({ _id: newId('aud'), ...entry } satisfies AuditRow);
      } catch (error) {
        if (entry._id === undefined || !isDuplicateKey(error)) throw error;
      }
    },

    list: (space: SearchedSpace, query: ListQuery): Promise<AuditRow[]> => listRows(audit, inSpace(space), query),
  };
}

/** Only these acts have an entity's id as their target; others name it in their details. */
export const ENTITY_ACTION = /^entity\./;

export function actsOn(entityId: string | undefined) {
  return entityId === undefined
    ? { $or: [{ action: ENTITY_ACTION }, { 'details.entity_id': { $exists: true } }] }
    : { $or: [{ action: ENTITY_ACTION, target: entityId }, { 'details.entity_id': entityId }] };
}
