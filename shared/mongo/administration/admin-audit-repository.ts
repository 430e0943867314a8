import type { Connection } from 'mongoose';

import type { AdminRole } from '../../config/secret-settings.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { newId } from '../../lifecycle/ids.ts';
import { collection, insertOnce, listRows } from '../collection.ts';

/** One line of the operator's audit log. */
export interface AdminAuditRow {
  _id: string;
  createdAt: number;
  /** The name of the token; absent where none was right. */
  actor?: string;
  role?: AdminRole;
  action: AdminAction;
  method: string;
  path: string;
  /** The id of what was changed: the last one of the path, or that of what was created. */
  target?: string;
  /** The body without its secrets, in JSON. */
  changesJson?: string;
  /** The answer's; absent while the call runs, and for ever where the process died in it. */
  status?: number;
  requestId: string;
  address: string;
  /** MongoDB deletes the line after this time. */
  expiresAt: Date;
}

export const ADMIN_ACTIONS = ['change', 'sign_in', 'sign_out', 'refused_tokens'] as const;
/** `refused_tokens`: an address has sent so many wrong tokens that it is kept out for a while. */
export type AdminAction = (typeof ADMIN_ACTIONS)[number];

export const adminAuditModel = collection<AdminAuditRow>('admin_audit_log', [
  [{ createdAt: -1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** Longer than a year, so that a yearly audit sees all of it. */
const KEPT_MS = 400 * 24 * 3_600_000;

export type AdminAuditEntry = Omit<AdminAuditRow, '_id' | 'expiresAt'>;

/** How a call ended. */
export type AdminOutcome = Required<Pick<AdminAuditRow, 'status'>> & Pick<AdminAuditRow, 'target'>;

/** Append-only but for how a call ended. */
export type AdminAuditRepository = ReturnType<typeof createAdminAuditRepository>;

export function createAdminAuditRepository(connection: Connection) {
  const lines = adminAuditModel(connection);
  return {
    /** Returns the line's id. */
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

    /** One row more than the limit. */
    list: (query: ListQuery): Promise<AdminAuditRow[]> => listRows(lines, {}, query),
  };
}
