import type { ListQuery } from '../../../contracts/list-page.ts';
import { listRows } from '../list-rows.ts';
import type { Models } from '../models.ts';
import type { TenantRow } from '../rows.ts';

type Settings = Omit<TenantRow, '_id' | 'shard' | 'createdAt' | 'keysIssued'>;

/** What an administrator may change. Undefined leaves a setting as it is, null takes an optional one away. */
export type TenantChanges = {
  [Name in keyof Settings]?: Settings[Name] | null | undefined;
};

export interface TenantRepository {
  insert(row: TenantRow): Promise<void>;
  find(tenantId: string): Promise<TenantRow | undefined>;
  /** One row more than the limit. */
  list(query: ListQuery): Promise<TenantRow[]>;
  /** Undefined: no such tenant. */
  update(tenantId: string, changes: TenantChanges): Promise<TenantRow | undefined>;
}

/** The one setting for which null is a value, "no budget", and not the absence of one. */
const NULL_IS_A_VALUE = 'monthlyTokenBudget';

function toUpdate(changes: TenantChanges): { $set?: object; $unset?: object } {
  const entries = Object.entries(changes).filter(([, value]) => value !== undefined);
  const removed = entries.filter(([name, value]) => value === null && name !== NULL_IS_A_VALUE);
  const set = entries.filter((entry) => !removed.includes(entry));
  return {
    ...(set.length === 0 ? {} : { $set: Object.fromEntries(set) }),
    ...(removed.length === 0 ? {} : { $unset: Object.fromEntries(removed.map(([name]) => [name, 1])) }),
  };
}

export function createTenantRepository(models: Models): TenantRepository {
  return {
    async insert(row) {
      await models.tenants.create(row);
    },

    async find(tenantId) {
      return (await models.tenants.findById(tenantId).lean()) ?? undefined;
    },

    list: (query) => listRows(models.tenants, {}, query),

    async update(tenantId, changes) {
      await models.tenants.updateOne({ _id: tenantId }, toUpdate(changes));
      return (await models.tenants.findById(tenantId).lean()) ?? undefined;
    },
  };
}
