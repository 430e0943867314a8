import { Router } from 'express';

import { parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { createKey } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { KeyRepository } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { KeyRow } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { TenantRepository } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { AuditTrail } from '../../resources/audit-log/audit-trail.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { findTenant } from '../tenants/route.ts';
import { pathId } from '../../contract/path-id.ts';
import { toKeyResource } from './resource.ts';
import { parseNewKey } from './schema.ts';

export interface AdminKeysDeps {
  tenants: TenantRepository;
  keys: KeyRepository;
  keyPrefix: string;
  accessFlags: AccessFlags;
  auditTrail: AuditTrail;
  clock: Clock;
}

function assertFound(key: KeyRow | undefined): asserts key is KeyRow {
  if (key === undefined) throw new ServiceError('not_found', 'This tenant has no API key with this id.');
}

/** `/admin/v1/tenants/{id}/keys`. */
export function createAdminKeysRoute(deps: AdminKeysDeps): Router {
  const { tenants, keys, accessFlags, auditTrail, clock } = deps;
  const router = Router();

  router
    .route('/tenants/:tenantId/keys')
    .post(async (req, res) => {
      const tenant = await findTenant(tenants, pathId(req, 'tenantId', 'ten'));
      const now = clock.now();
      const { key, value } = await createKey(deps, tenant._id, parseNewKey(req.body, now), now);
      const { mode, scopes } = key;
      const act = { action: 'key.created', target: key._id, details: { mode, scopes } };
      await auditTrail.byAdministrator(res, tenant._id, act);
      res.status(201).json({ ...toKeyResource(key, tenant, now), value });
    })
    .get(async (req, res) => {
      const query = parseListQuery(req.query);
      const tenant = await findTenant(tenants, pathId(req, 'tenantId', 'ten'));
      const rows = await keys.list(tenant._id, query);
      const now = clock.now();
      res.json(toListPage(rows, query.limit, (row) => toKeyResource(row, tenant, now)));
    })
    .all(methodNotAllowed('GET', 'POST'));

  router
    .route('/tenants/:tenantId/keys/:keyId')
    .get(async (req, res) => {
      const tenant = await findTenant(tenants, pathId(req, 'tenantId', 'ten'));
      const key = await keys.find(tenant._id, pathId(req, 'keyId', 'key'));
      assertFound(key);
      res.json(toKeyResource(key, tenant, clock.now()));
    })
    .delete(async (req, res) => {
      const tenant = await findTenant(tenants, pathId(req, 'tenantId', 'ten'));
      const key = await keys.revoke(tenant._id, pathId(req, 'keyId', 'key'));
      assertFound(key);
      await accessFlags.block(tenant.shard, key._id);
      await auditTrail.byAdministrator(res, tenant._id, { action: 'key.revoked', target: key._id });
      res.json({ id: key._id, object: 'api_key', deleted: true });
    })
    .all(methodNotAllowed('GET', 'DELETE'));

  return router;
}
