import { Router } from 'express';

import { parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { TenantRow } from '../../../shared/infra/mongo/rows.ts';
import type { TenantRepository } from '../../../shared/infra/mongo/tenant-repository.ts';
import type { AccessFlags } from '../../../shared/infra/redis/access-flags.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { pathId } from '../path-id.ts';
import { applyStatus } from './apply-status.ts';
import { readBalance } from './balance.ts';
import { createTenant } from './create-tenant.ts';
import type { CreateTenantDeps } from './create-tenant.ts';
import { toTenantResource } from './resource.ts';
import { parseNewTenant, parseTenantChanges } from './schema.ts';

export interface AdminTenantsDeps extends CreateTenantDeps {
  accessFlags: AccessFlags;
  clock: Clock;
}

/** Throws `not_found`. */
export async function findTenant(tenants: Pick<TenantRepository, 'find'>, tenantId: string): Promise<TenantRow> {
  const tenant = await tenants.find(tenantId);
  if (tenant === undefined) throw new ServiceError('not_found', 'There is no tenant with this id.');
  return tenant;
}

/** `/admin/v1/tenants`. */
export function createAdminTenantsRoute(deps: AdminTenantsDeps): Router {
  const { tenants, accessFlags, clock } = deps;
  const toResource = async (row: TenantRow) => toTenantResource(row, await readBalance(deps, row, clock.now()));
  const router = Router();

  router
    .route('/tenants')
    .post(async (req, res) => {
      const tenant = await createTenant(deps, parseNewTenant(req.body), clock.now());
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
      res.json(await toResource(tenant));
    })
    .all(methodNotAllowed('GET', 'PATCH'));

  return router;
}
