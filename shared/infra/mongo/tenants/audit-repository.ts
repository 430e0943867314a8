import type { ListQuery } from '../../../contracts/list-page.ts';
import { newId } from '../../../lifecycle/ids.ts';
import { isDuplicateKey } from '../connection.ts';
import { listRows } from '../list-rows.ts';
import type { Models } from '../models.ts';
import type { AuditRow } from '../rows.ts';

/** What a line says beside its id. `details` holds no secret and no conversation text. */
export type AuditEntry = Omit<AuditRow, '_id'> & Partial<Pick<AuditRow, '_id'>>;

/** Append-only: there is no way to change or delete a line. */
export interface AuditRepository {
  /** An entry with an id of its own is written once. */
  append(entry: AuditEntry): Promise<void>;
  /** One row more than the limit. */
  list(tenantId: string, query: ListQuery): Promise<AuditRow[]>;
}

export function createAuditRepository({ audit }: Pick<Models, 'audit'>): AuditRepository {
  return {
    async append(entry) {
      try {
        await audit.create({ _id: newId('aud'), ...entry });
      } catch (error) {
        if (entry._id === undefined || !isDuplicateKey(error)) throw error;
      }
    },

    list: (tenantId, query) => listRows(audit, { tenantId }, query),
  };
}
