import { Router } from 'express';

import { parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { TenantChanges, TenantRepository } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { AuditedAct, AuditTrail } from '../../resources/audit-log/audit-trail.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { pathId } from '../../contract/path-id.ts';
import { applyStatus } from './apply-status.ts';
import { readBalance } from './balance.ts';
import { createTenant } from './create-tenant.ts';
import type { CreateTenantDeps } from './create-tenant.ts';
import { toTenantResource } from './resource.ts';
import { parseNewTenant, parseTenantChanges } from './schema.ts';

export interface AdminTenantsDeps extends CreateTenantDeps {
  accessFlags: AccessFlags;
  auditTrail: AuditTrail;
  clock: Clock;
}

/** Throws `not_found`. */
export async function findTenant(tenants: Pick<TenantRepository, 'find'>, tenantId: string): Promise<TenantRow> {
  const tenant = await tenants.find(tenantId);
  if (tenant === undefined) throw new ServiceError('not_found', 'There is no tenant with this id.');
  return tenant;
}

/** A change of status is an act of its own; of the settings the log names the fields. */
function actOf({ status, ...settings }: TenantChanges): Omit<AuditedAct, 'target'> {
  const fields = Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (status === undefined) return { action: 'tenant.updated', details: { fields } };
  return { action: status === 'suspended' ? 'tenant.suspended' : 'tenant.activated', details: { fields } };
}

/** `/admin/v1/tenants`. */
export function createAdminTenantsRoute(deps: AdminTenantsDeps): Router {
  const { tenants, accessFlags, auditTrail, clock } = deps;
  const toResource = async (row: TenantRow) => toTenantResource(row, await readBalance(deps, row, clock.now()));
  const router = Router();

  router
    .route('/tenants')
    .post(async (req, res) => {
      const given = parseNewTenant(req.body);
      const tenant = await createTenant(deps, given, clock.now());
      const act = { action: 'tenant.created', target: tenant._id, details: { credits: given.credits } };
      await auditTrail.byAdministrator(res, tenant._id, act);
      res.status(201).json(await toResource(tenant));
    })
    .get(async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = await tenants.list(query);
      const resources = await Promise.all(rows.slice(0, query.limit).map(toResource));
      const page = toListPage(rows, query.limit, (row) => ({ id: row._id }));
      res.json({ ...page, data: resources });
    })
    .all(methodNotAllowed('GET', 'POST'));

  router
    .route('/tenants/:tenantId')
    .get(async (req, res) => {
      res.json(await toResource(await findTenant(tenants, pathId(req, 'tenantId', 'ten'))));
    })
    .patch(async (req, res) => {
      const tenantId = pathId(req, 'tenantId', 'ten');
      const changes = parseTenantChanges(req.body);
      const updated = await tenants.update(tenantId, changes);
      if (updated === undefined) throw new ServiceError('not_found', 'There is no tenant with this id.');
      if (changes.status === undefined) await accessFlags.announce(tenantId);
      const tenant = changes.status === undefined ? updated : await applyStatus(deps, updated);
      await auditTrail.byAdministrator(res, tenantId, { ...actOf(changes), target: tenantId });
      res.json(await toResource(tenant));
    })
    .all(methodNotAllowed('GET', 'PATCH'));

  return router;
}
