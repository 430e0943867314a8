import type { Principal } from '../../../shared/domain/keys/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { KeyChanges, KeyRepository, KeyRow } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { TenantRepository, TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { found } from '../../contract/path-parameters.ts';
import type { TenantEvents } from '../../tenant-events.ts';
import { assertMayManage } from './grant.ts';

export interface ChangeKeyDeps {
  keys: KeyRepository;
  tenants: Pick<TenantRepository, 'find'>;
  accessFlags: AccessFlags;
  events: TenantEvents;
  clock: Clock;
}

/** Throws `not_found`. */
export async function findTenant(tenants: Pick<TenantRepository, 'find'>, tenantId: string): Promise<TenantRow> {
  return found(await tenants.find(tenantId), 'tenantId');
}

/**
 * Revokes a key at once, everywhere. The tenant may be moved meanwhile: a flag set before the move moves along, and one
 * set too late for that is set again on the tenant's new shard.
 */
export async function revokeAtOnce(
  { keys, tenants, accessFlags }: Pick<ChangeKeyDeps, 'keys' | 'tenants' | 'accessFlags'>,
  { tenantId, shard }: Pick<Principal, 'tenantId' | 'shard'>,
  keyId: string,
): Promise<void> {
  await accessFlags.blockAround(shard, keyId, () => keys.revoke(tenantId, keyId));
  const tenant = await tenants.find(tenantId);
  if (tenant !== undefined && tenant.shard !== shard) await accessFlags.block(tenant.shard, keyId);
}

/** The tenant of the calling key. */
export function ownTenant({ tenants }: Pick<ChangeKeyDeps, 'tenants'>, { tenantId }: Principal): Promise<TenantRow> {
  return findTenant(tenants, tenantId);
}

/** Changes a key that is not revoked, as `decide` says. Throws `not_found`, `conflict` or `endpoint_not_allowed`. */
export async function changeKey(
  { keys }: Pick<ChangeKeyDeps, 'keys'>,
  principal: Principal,
  keyId: string,
  now: number,
  decide: (key: KeyRow) => KeyChanges,
): Promise<KeyRow> {
  const key = await keys.change(principal.tenantId, keyId, now, (row) => {
    assertMayManage(principal, row);
    if (row.status === 'revoked') {
      throw new ServiceError('conflict', 'This API key has been revoked; create a new one.');
    }
    return decide(row);
  });
  return found(key, 'keyId');
}
