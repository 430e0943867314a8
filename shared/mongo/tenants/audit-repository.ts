import type { Connection } from 'mongoose';

import type { ListQuery } from '../../contracts/list-page.ts';
import type { SearchedSpace } from '../../contracts/space.ts';
import { newId } from '../../lifecycle/ids.ts';
import { collection, listRows, inSpace } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import type { RowOfSpace } from '../collection.ts';

/** One line of a tenant's audit log; never changed and never deleted. */
export interface AuditRow extends RowOfSpace {
  _id: string;
  createdAt: number;
  /** An API key's id, or `administrator`. */
  actor: string;
  action: string;
  /** The id of what was acted on. */
  target: string;
  requestId: string;
  /** Holds no secret and no conversation text. */
  details: Record<string, unknown>;
}

export const auditModel = collection<AuditRow>('audit_log', [[{ tenantId: 1, createdAt: -1 }]]);

/** The fields of a line beside its id. `details` holds no secret and no conversation text. */
export type AuditEntry = Omit<AuditRow, '_id'> & Partial<Pick<AuditRow, '_id'>>;

/** Append-only: there is no way to change or delete a line. */
export type AuditRepository = ReturnType<typeof createAuditRepository>;

export function createAuditRepository(connection: Connection) {
  const audit = auditModel(connection);
  return {
    /** An entry with an id of its own is written once. */
    async append(entry: AuditEntry): Promise<void> {
      try {
        await audit.create({ _id: newId('aud'), ...entry } satisfies AuditRow);
      } catch (error) {
        if (entry._id === undefined || !isDuplicateKey(error)) throw error;
      }
    },

    /** One row more than the limit. */
    list: (space: SearchedSpace, query: ListQuery): Promise<AuditRow[]> => listRows(audit, inSpace(space), query),
  };
}

/** Acts on entities have the entity's id as their target; other acts name it in their details. */
export const ENTITY_ACTION = /^entity\./;

/** Lines of the audit log that name the entity; undefined: any. */
export function actsOn(entityId: string | undefined) {
  return entityId === undefined
    ? { $or: [{ action: ENTITY_ACTION }, { 'details.entity_id': { $exists: true } }] }
    : { $or: [{ action: ENTITY_ACTION, target: entityId }, { 'details.entity_id': entityId }] };
}
