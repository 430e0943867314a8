import type { TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { TenantRepository } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';

/**
 * Makes Redis say what the tenant's row says. It reads the row again after each write, so that of two administrators
 * who suspend and reactivate at once both leave the flag that the row ends with.
 */
export async function applyStatus(
  { tenants, accessFlags }: { tenants: Pick<TenantRepository, 'find'>; accessFlags: AccessFlags },
  tenant: TenantRow,
): Promise<TenantRow> {
  let applied = tenant;
  for (;;) {
    if (applied.status === 'suspended') await accessFlags.block(applied.shard, applied._id);
    else await accessFlags.unblock(applied.shard, applied._id);
    const latest = (await tenants.find(applied._id)) ?? applied;
    if (latest.status === applied.status) return latest;
    applied = latest;
  }
}
