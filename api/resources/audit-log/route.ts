import type { Router } from 'express';

import { parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import type { AuditRepository } from '../../../shared/infra/mongo/tenants/audit-repository.ts';
import type { AuditRow } from '../../../shared/infra/mongo/tenants/audit-repository.ts';
import { principalOf } from '../../http/request-context.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';

export interface AuditLogRouteDeps {
  serve: ServeEndpoints;
  audit: Pick<AuditRepository, 'list'>;
}

function toAuditResource(row: AuditRow) {
  return {
    id: row._id,
    object: 'audit_log.entry',
    created_at: Math.floor(row.createdAt / 1000),
    actor: row.actor,
    action: row.action,
    target: row.target,
    request_id: row.requestId,
    details: row.details,
  };
}

/** `GET /compliance/audit_log` (docs/spec/contract.md section 6). */
export function createAuditLogRoute({ serve, audit }: AuditLogRouteDeps): Router {
  return serve({
    listAuditLog: async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = await audit.list(principalOf(res).tenantId, query);
      res.json(toListPage(rows, query.limit, toAuditResource));
    },
  });
}
