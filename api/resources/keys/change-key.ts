import { flagOf } from '../../../shared/domain/keys/principal.ts';
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
  { _id: keyId, revision = 0 }: Pick<KeyRow, '_id' | 'revision'>,
): Promise<void> {
  const flag = flagOf({ keyId, revision });
  const revoked = await accessFlags.blockAround(shard, flag, () => keys.revoke(tenantId, keyId));
  // The key may have been changed meanwhile.
  const last = flagOf({ keyId, revision: revoked?.revision ?? revision });
  const tenant = await tenants.find(tenantId);
  const isElsewhere = tenant !== undefined && tenant.shard !== shard;
  if (isElsewhere || last !== flag) await accessFlags.block(tenant?.shard ?? shard, last);
}

/** The tenant of the calling key. */
export function ownTenant({ tenants }: Pick<ChangeKeyDeps, 'tenants'>, { tenantId }: Principal): Promise<TenantRow> {
  return findTenant(tenants, tenantId);
}

/** What a change is, and whether something is taken back by it that the key has allowed. */
interface KeyDecision {
  changes: KeyChanges;
  takesBack: boolean;
}

interface ChangedKey {
  key: KeyRow;
  /** Tells every ingress. What was taken back counts no more even where that message is missed. */
  announce(): Promise<void>;
}

/** Changes a key that is not revoked, as `decide` says. Throws `not_found`, `conflict` or `endpoint_not_allowed`. */
export async function changeKey(
  { keys, accessFlags }: Pick<ChangeKeyDeps, 'keys' | 'accessFlags'>,
  principal: Principal,
  keyId: string,
  now: number,
  decide: (key: KeyRow) => KeyDecision,
): Promise<ChangedKey> {
  let outdated: string | undefined;
  const key = await keys.change(principal.tenantId, keyId, now, (row) => {
    assertMayManage(principal, row);
    if (row.status === 'revoked') {
      throw new ServiceError('conflict', 'This API key has been revoked; create a new one.');
    }
    const { changes, takesBack } = decide(row);
    const { revision = 0 } = row;
    outdated = takesBack ? flagOf({ keyId, revision }) : undefined;
    return takesBack ? { ...changes, revision: revision + 1 } : changes;
  });
  return {
    key: found(key, 'keyId'),
    async announce() {
      await accessFlags.announce(keyId);
      if (outdated !== undefined) await accessFlags.outdate(principal.shard, outdated);
    },
  };
}
