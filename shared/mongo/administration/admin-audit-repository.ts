import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import type { AdminRole } from '../../config/secret-settings.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { newId } from '../../lifecycle/ids.ts';
import { collection, count, number, options, required, text, insertOnce, listRows } from '../collection.ts';

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

const adminAuditSchema = new Schema<AdminAuditRow>(
  {
    _id: required,
    createdAt: count,
    actor: text,
    role: text,
    action: required,
    method: required,
    path: required,
    target: text,
    changesJson: text,
    status: number,
    requestId: required,
    address: required,
    expiresAt: { type: Date, required: true },
  },
  options,
)
  .index({ createdAt: -1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

export const adminAuditModel = collection<AdminAuditRow>('AdminAudit', 'admin_audit_log', adminAuditSchema);

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
      await insertOnce(lines.create({ _id, ...entry, expiresAt: new Date(entry.createdAt + KEPT_MS) }));
      return _id;
    },

    async conclude(id: string, { status, target }: AdminOutcome): Promise<void> {
      await lines.updateOne({ _id: id }, { $set: { status, ...(target === undefined ? {} : { target }) } });
    },

    /** One row more than the limit. */
    list: (query: ListQuery): Promise<AdminAuditRow[]> => listRows(lines, {}, query),
  };
}
