import type { TenantRepository, TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';

export interface ApplyStatusDeps {
  tenants: Pick<TenantRepository, 'find'>;
  accessFlags: Pick<AccessFlags, 'block' | 'unblock'>;
}

/**
 * Copies the status of the tenant's row to Redis. Reads the row again after each write, so that when several
 * administrators suspend, reactivate or move a tenant at the same time, all end with the flag of the final row, on its
 * shard.
 */
export async function applyStatus({ tenants, accessFlags }: ApplyStatusDeps, tenant: TenantRow): Promise<TenantRow> {
  let applied = tenant;
  for (;;) {
    if (applied.status === 'suspended') await accessFlags.block(applied.shard, applied._id);
    else await accessFlags.unblock(applied.shard, applied._id);
    const latest = (await tenants.find(applied._id)) ?? applied;
    if (latest.status === applied.status && latest.shard === applied.shard) return latest;
    applied = latest;
  }
}
