import { createHash } from 'node:crypto';

import { tenantSettingsOf } from '../../../shared/contracts/tenant-fields.ts';
import type { TenantSettingsChanges } from '../../../shared/contracts/tenant-fields.ts';
import { toMicro } from '../../../shared/domain/pricing.ts';
import type { AccountRepository } from '../../../shared/mongo/accounts/account-repository.ts';
import type { ShardDirectory, TenantRepository, TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../../shared/redis/stores/account-store.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';

/**
 * The shard of a new tenant: one of those with the fewest tenants, so that newly added shards fill first. Among
 * several, the tenant's id decides, because other processes may choose at the same moment.
 */
export function chooseShard(tenantId: string, tenantsByShard: readonly number[]): number {
  const least = Math.min(...tenantsByShard);
  const emptiest = tenantsByShard.flatMap((count, shard) => (count === least ? [shard] : []));
  const place = createHash('sha256').update(tenantId).digest().readUInt32BE(0) % emptiest.length;
  return emptiest[place] ?? 0;
}

export interface CreateTenantDeps {
  tenants: TenantRepository;
  accounts: AccountRepository;
  accountStore: AccountStore;
  shardDirectory: ShardDirectory;
}

export interface NewTenant {
  settings: TenantSettingsChanges;
  /** Granted at once. */
  credits: number;
}

/** Writes the tenant's row last: if a step fails, there is no tenant, and the administrator can try again. */
export async function createTenant(deps: CreateTenantDeps, tenant: NewTenant, now: number): Promise<TenantRow> {
  const tenantId = newId('ten');
  const shard = chooseShard(tenantId, await deps.shardDirectory.tenantsByShard());
  await deps.accounts.open(tenantId);
  if (tenant.credits > 0) {
    const { book } = await deps.accounts.book({
      tenantId,
      type: 'grant',
      amountMicro: toMicro(tenant.credits),
      reason: 'Initial credits',
      now,
    });
    await deps.accountStore.publishBalance(shard, tenantId, book);
  }
  const row: TenantRow = {
    ...tenantSettingsOf(tenant.settings),
    _id: tenantId,
    status: 'active',
    shard,
    createdAt: now,
  };
  await deps.tenants.insert(row);
  return row;
}
