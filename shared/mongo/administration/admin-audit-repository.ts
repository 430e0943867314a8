import type { Connection } from 'mongoose';

import type { AdminRole } from '../../config/secret-settings.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { newId } from '../../lifecycle/ids.ts';
import { collection, insertOnce, listRows } from '../collection.ts';

export interface AdminAuditRow {
  _id: string;
  createdAt: number;
  /** The token's name; absent where none was right. */
  actor?: string;
  role?: AdminRole;
  action: AdminAction;
  method: string;
  path: string;
  /** The id of what was changed: the path's last one, or the created one. */
  target?: string;
  /** In JSON, without its secrets. */
  changesJson?: string;
  /** The answer's; absent while the call runs, and for ever if the process died in it. */
  status?: number;
  requestId: string;
  address: string;
  expiresAt: Date;
}

export const ADMIN_ACTIONS = ['change', 'sign_in', 'sign_out', 'refused_tokens'] as const;
/** `refused_tokens`: an address has sent so many wrong tokens that it is kept out for a while. */
export type AdminAction = (typeof ADMIN_ACTIONS)[number];

export const adminAuditModel = collection<AdminAuditRow>('admin_audit_log', [
  [{ createdAt: -1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** A yearly audit sees all of it. */
const KEPT_MS = 400 * 24 * 3_600_000;

export type AdminAuditEntry = Omit<AdminAuditRow, '_id' | 'expiresAt'>;

export type AdminOutcome = Required<Pick<AdminAuditRow, 'status'>> & Pick<AdminAuditRow, 'target'>;

/** Append-only but for the end of a call. */
export type AdminAuditRepository = ReturnType<typeof createAdminAuditRepository>;

export function createAdminAuditRepository(connection: Connection) {
  const lines = adminAuditModel(connection);
  return {
    async append(entry: AdminAuditEntry): Promise<string> {
      const _id = newId('aud');
      // The id is new, so a duplicate is our own line.
      const line: AdminAuditRow = { _id, ...entry, expiresAt: new Date(entry.createdAt + KEPT_MS) };
      await insertOnce(lines.create(line));
      return _id;
    },

    async conclude(id: string, { status, target }: AdminOutcome): Promise<void> {
      await lines.updateOne({ _id: id }, { $set: { status, ...(target === undefined ? {} : { target }) } });
    },

    list: (query: ListQuery): Promise<AdminAuditRow[]> => listRows(lines, {}, query),
  };
}
