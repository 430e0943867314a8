import { toListPage } from '../../../shared/contracts/list-page.ts';
import { ADMIN_ACTIONS } from '../../../shared/mongo/administration/admin-audit-repository.ts';
import type {
  AdminAuditRepository,
  AdminAuditRow,
} from '../../../shared/mongo/administration/admin-audit-repository.ts';
import { defineAdminEndpoint, ok, exampleList, json, listQuery } from '../../contract/endpoint.ts';
import {
  field,
  integer,
  kind,
  named,
  nullable,
  oneOf,
  pageSchema,
  resource,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const entryResource = resource<[row: AdminAuditRow]>('AdminAuditLogEntry', {
  id: field(text(), 'aud_6tR8eW1qA3sD5fG7hJ9kL2zX', (row) => row._id),
  object: kind('admin_audit_log.entry'),
  created_at: field(time('Time of the call'), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  actor: field(nullable(text('The name of the token; null where none was right.')), 'dana', (row) => row.actor),
  role: field(nullable(oneOf(['read', 'write'])), 'write', (row) => row.role),
  action: field(
    oneOf(
      ADMIN_ACTIONS,
      '`refused_tokens`: the address has sent so many wrong tokens that it is kept out for up to a minute.',
    ),
    'change',
    (row) => row.action,
  ),
  method: field(text(), 'PUT', (row) => row.method),
  path: field(text(), '/admin/v1/providers/openai', (row) => row.path),
  target: field(nullable(text('The id of what was changed.')), 'openai', (row) => row.target),
  changes: field(
    nullable({ type: 'object', description: 'The body of the call, without secrets or entities.' }),
    { kind: 'openai', base_url: 'https://api.openai.com/v1', api_key: '[hidden]' },
    // This service wrote the JSON itself.
    ({ changesJson }) => (changesJson === undefined ? null : JSON.parse(changesJson)),
  ),
  status: field(
    nullable(integer('Of the answer; null where nobody knows how the call ended.', 100)),
    200,
    (row) => row.status,
  ),
  request_id: field(text(), PATH_PARAMETERS.requestId.example, (row) => row.requestId),
  address: field(text('Where the call came from.'), '10.0.0.7', (row) => row.address),
});

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
  answers: { 200: json('A page of entries.', named('AdminAuditLogList', pageSchema(entryResource.schema))) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(entryResource.example) } },
  async handle({ query }, { adminAudit }: AdminAuditLogDeps) {
    return ok(toListPage(await adminAudit.list(query), query.limit, entryResource.of));
  },
});

/** The administration's audit log: each change, and who made it (docs/spec.md#operators-audit-log). */
export const adminAuditEndpoints = { listAdminAuditLog };
