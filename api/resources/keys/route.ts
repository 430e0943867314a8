import type { Response, Router } from 'express';

import { parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { createApiKey } from '../../../shared/domain/keys/api-key.ts';
import { excessOf } from './grant.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import { applyKeyChanges, createKey, isActiveKey } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { KeyChanges, KeyRepository } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { KeyRow } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { TenantRepository } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { randomBase62 } from '../../../shared/lifecycle/ids.ts';
import type { AuditTrail } from '../audit-log/audit-trail.ts';
import { contextOf, createdBefore, idForNew, principalOf } from '../../http/request-context.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';
import { toKeyResource } from '../../admin/keys/resource.ts';
import { parseNewKey } from '../../admin/keys/schema.ts';
import { findTenant } from '../../admin/tenants/route.ts';
import { pathId } from '../../contract/path-id.ts';
import { assertGranted, grantOf } from './assert-granted.ts';
import { rotationOf } from './rotation.ts';
import { parseKeyChanges, parseRotation } from './schema.ts';

export interface KeysRouteDeps {
  serve: ServeEndpoints;
  keys: KeyRepository;
  tenants: Pick<TenantRepository, 'find'>;
  keyPrefix: string;
  accessFlags: AccessFlags;
  auditTrail: AuditTrail;
  clock: Clock;
  log: Logger;
}

function assertFound(key: KeyRow | undefined): asserts key is KeyRow {
  if (key === undefined) throw new ServiceError('not_found', 'There is no API key with this id.');
}

function assertNotRevoked(key: KeyRow): void {
  if (key.status === 'revoked') throw new ServiceError('conflict', 'This API key has been revoked; create a new one.');
}

/** The names of the fields that a change sets. */
function changedFields(changes: KeyChanges): string[] {
  return Object.entries(changes).flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

/**
 * `/keys` (docs/spec/contract.md section 6). A key never grants scopes, limits, mode or expiry beyond its own: what it
 * creates, widens or rotates must be within what it has. Narrowing and revoking any key of the tenant is open to every
 * key with the scope.
 */
export function createKeysRoute(deps: KeysRouteDeps): Router {
  const { serve, keys, tenants, keyPrefix, accessFlags, auditTrail, clock, log } = deps;
  const ownTenant = (res: Response) => findTenant(tenants, principalOf(res).tenantId);

  /** `decide` says what to change of a key that is not revoked. */
  async function change(
    res: Response,
    keyId: string,
    now: number,
    decide: (key: KeyRow) => KeyChanges,
  ): Promise<KeyRow> {
    const key = await keys.change(principalOf(res).tenantId, keyId, now, (row) => {
      assertNotRevoked(row);
      return decide(row);
    });
    assertFound(key);
    return key;
  }

  /** The caller may narrow any key; what a change widens must be within the caller's own. */
  function assertMayChange(res: Response, tenant: TenantRow, before: KeyRow, after: KeyRow, now: number): void {
    const isRevived = !isActiveKey(before, now) && isActiveKey(after, now);
    const [was, will] = [grantOf(before, tenant), grantOf(after, tenant)];
    if (isRevived || excessOf(was, will) !== undefined) assertGranted(principalOf(res), will);
  }

  return serve({
    createKey: async (req, res) => {
      const now = clock.now();
      const settings = parseNewKey(req.body, now);
      const tenant = await ownTenant(res);
      assertGranted(principalOf(res), grantOf(settings, tenant));
      const keyId = idForNew(res, 'key');
      const before = await createdBefore(res, () => keys.find(tenant._id, keyId));
      const { key, ...shownOnce } =
        before === undefined ? await createKey(deps, tenant._id, settings, now, keyId) : { key: before };
      const { mode, scopes } = key;
      await auditTrail.byKey(res, { action: 'key.created', target: keyId, details: { mode, scopes }, isOnce: true });
      res.status(201).json({ ...toKeyResource(key, tenant, now), ...shownOnce });
    },

    listKeys: async (req, res) => {
      const query = parseListQuery(req.query);
      const tenant = await ownTenant(res);
      const rows = await keys.list(tenant._id, query);
      const now = clock.now();
      res.json(toListPage(rows, query.limit, (row) => toKeyResource(row, tenant, now)));
    },

    getKey: async (req, res) => {
      const keyId = pathId(req, 'keyId', 'key');
      const tenant = await ownTenant(res);
      const key = await keys.find(tenant._id, keyId);
      assertFound(key);
      res.json(toKeyResource(key, tenant, clock.now()));
    },

    updateKey: async (req, res) => {
      const keyId = pathId(req, 'keyId', 'key');
      const now = clock.now();
      const changes = parseKeyChanges(req.body, now);
      const tenant = await ownTenant(res);
      const key = await change(res, keyId, now, (row) => {
        assertMayChange(res, tenant, row, applyKeyChanges(row, changes), now);
        return changes;
      });
      await accessFlags.announce(keyId);
      await auditTrail.byKey(res, {
        action: 'key.updated',
        target: keyId,
        details: { fields: changedFields(changes) },
      });
      res.json(toKeyResource(key, tenant, now));
    },

    revokeKey: async (req, res) => {
      const keyId = pathId(req, 'keyId', 'key');
      const { tenantId, shard } = principalOf(res);
      const key = await keys.revoke(tenantId, keyId);
      assertFound(key);
      await accessFlags.block(shard, keyId);
      await auditTrail.byKey(res, { action: 'key.revoked', target: keyId });
      res.json({ id: keyId, object: 'api_key', deleted: true });
    },

    rotateKey: async (req, res) => {
      const keyId = pathId(req, 'keyId', 'key');
      const graceSeconds = parseRotation(req.body);
      const now = clock.now();
      const tenant = await ownTenant(res);
      const rotatedUnder = contextOf(res).run?.name;
      let value: string | undefined;
      const key = await change(res, keyId, now, (row) => {
        // Whoever rotates a key holds its value, so it must not allow more than the caller's own.
        assertGranted(principalOf(res), grantOf(row, tenant));
        // An earlier run has rotated it already; its value is not known any more.
        if (rotatedUnder !== undefined && row.rotatedUnder === rotatedUnder) return {};
        if (!isActiveKey(row, now)) {
          throw new ServiceError('conflict', 'This API key has expired; set a later `expires_at` before rotating it.');
        }
        const next = createApiKey(keyPrefix, row.mode, randomBase62(26));
        ({ value } = next);
        return { ...rotationOf(row, next, graceSeconds * 1000, now), rotatedUnder };
      });
      // The new value can be shown only now: caches that do not hear of it forget the old one by themselves.
      await accessFlags.announce(keyId).catch((error: unknown) => {
        log.warn('A rotation could not be announced; old values may be accepted a few seconds longer.', {
          keyId,
          error,
        });
      });
      await auditTrail.byKey(res, { action: 'key.rotated', target: keyId, details: { grace_seconds: graceSeconds } });
      res.json({ ...toKeyResource(key, tenant, now), ...(value === undefined ? {} : { value }) });
    },
  });
}
