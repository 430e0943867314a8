import { toListPage } from '../../../shared/contracts/list-page.ts';
import { ADMIN_ACTIONS } from '../../../shared/mongo/administration/admin-audit-repository.ts';
import type {
  AdminAuditRepository,
  AdminAuditRow,
} from '../../../shared/mongo/administration/admin-audit-repository.ts';
import { defineAdminEndpoint, ok, exampleList, json, listQuery } from '../../contract/endpoint.ts';
import {
  constant,
  integer,
  named,
  nullable,
  object,
  oneOf,
  pageSchema,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';

const fields = {
  id: text(),
  object: constant('admin_audit_log.entry'),
  created_at: time('Time of the call'),
  actor: nullable(text('The name of the token; null where none was right.')),
  role: nullable(oneOf(['read', 'write'])),
  action: oneOf(
    ADMIN_ACTIONS,
    '`refused_tokens`: the address has sent so many wrong tokens that it is kept out for up to a minute.',
  ),
  method: text(),
  path: text(),
  target: nullable(text('The id of what was changed.')),
  changes: nullable({ type: 'object', description: 'The body of the call, without secrets or entities.' }),
  status: nullable(integer('Of the answer; null where nobody knows how the call ended.', 100)),
  request_id: text(),
  address: text('Where the call came from.'),
};

function toEntry(row: AdminAuditRow) {
  return {
    id: row._id,
    object: 'admin_audit_log.entry',
    created_at: toSeconds(row.createdAt),
    actor: row.actor ?? null,
    role: row.role ?? null,
    action: row.action,
    method: row.method,
    path: row.path,
    target: row.target ?? null,
    // This service wrote the JSON itself.
    changes: row.changesJson === undefined ? null : (JSON.parse(row.changesJson) as object),
    status: row.status ?? null,
    request_id: row.requestId,
    address: row.address,
  } satisfies FieldsOf<typeof fields>;
}

const EXAMPLE: ReturnType<typeof toEntry> = {
  id: 'aud_6tR8eW1qA3sD5fG7hJ9kL2zX',
  object: 'admin_audit_log.entry',
  created_at: 1_795_255_200,
  actor: 'dana',
  role: 'write',
  action: 'change',
  method: 'PUT',
  path: '/admin/v1/providers/openai',
  target: 'openai',
  changes: { kind: 'openai', base_url: 'https://api.openai.com/v1', api_key: '[hidden]' },
  status: 200,
  request_id: 'req_4fK2mZ8sQ1xY7bN3vC6tR9wE',
  address: '10.0.0.7',
};

export interface AdminAuditLogDeps {
  adminAudit: AdminAuditRepository;
}

const listAdminAuditLog = defineAdminEndpoint({
  method: 'GET',
  path: '/audit_log',
  tag: 'Audit log',
  summary: 'List changes and sign-ins',
  description: 'A line is written before its change is made. It stays for 400 days.',
  query: listQuery,
  answers: {
    200: json(
      'A page of entries.',
      named('AdminAuditLogList', pageSchema(named('AdminAuditLogEntry', object(fields)))),
    ),
  },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(EXAMPLE) } },
  async handle({ query }, { adminAudit }: AdminAuditLogDeps) {
    return ok(toListPage(await adminAudit.list(query), query.limit, toEntry));
  },
});

/** The administration's audit log: each change, and who made it (docs/spec.md#operators-audit-log). */
export const adminAuditEndpoints = { listAdminAuditLog };
