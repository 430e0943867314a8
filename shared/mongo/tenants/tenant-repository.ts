import type { Connection } from 'mongoose';

import type { ListQuery } from '../../contracts/list-page.ts';
import { TENANT_FIELDS } from '../../contracts/tenant-fields.ts';
import type { TenantSettings, TenantSettingsChanges } from '../../contracts/tenant-fields.ts';
import { collection, toFieldUpdate, containing, listRows } from '../collection.ts';

/** A tenant, and the shard of Redis that holds everything of it that is in flight; only a move changes it. */
export interface TenantPlace {
  _id: string;
  shard: number;
}

/** Rows as they are stored. Ids are the public ones; times are milliseconds since the epoch. */
export interface TenantRow extends TenantSettings, TenantPlace {
  status: 'active' | 'suspended';
  /** When it was closed for good; from then on it is suspended, too. */
  closedAt?: number;
  /** While the tenant is moved to another shard; see tenant-moves.ts. */
  move?: TenantMove;
  /** Rises with every new or changed key; writing it makes concurrent changes of the tenant's keys take turns. */
  keysIssued?: number;
  /** The same for webhooks. */
  webhooksMade?: number;
  createdAt: number;
}

/** A move on its way. The tenant's `shard` says whether it has got there. */
export interface TenantMove {
  from: number;
  to: number;
  /** Names the process that moves it: another one that takes over has a token of its own. */
  token: string;
  /** When that process was last heard of. */
  renewedAt: number;
}

export const tenantModel = collection<TenantRow>('tenants', [[{ shard: 1 }]]);

export type TenantChanges = TenantSettingsChanges & { status?: TenantRow['status'] | undefined };

export type TenantRepository = ReturnType<typeof createTenantRepository>;

export const CLOSED = 'This tenant is closed for good; create another one.';

/** Settings for which null is a value, "no bound", and not the absence of one. */
const NULL_IS_A_VALUE: ReadonlySet<string> = new Set(
  TENANT_FIELDS.flatMap(([name, { kind }]) => (kind === 'bound' ? [name] : [])),
);

export function createTenantRepository(connection: Connection) {
  const tenants = tenantModel(connection);
  return {
    async insert(row: TenantRow): Promise<void> {
      await tenants.create(row);
    },

    async find(tenantId: string): Promise<TenantRow | undefined> {
      return (await tenants.findById(tenantId).lean()) ?? undefined;
    },

    /** Those of the tenants that are on another shard than this one. */
    elsewhere: (shard: number, tenantIds: readonly string[]): Promise<TenantPlace[]> =>
      tenants.find({ _id: { $in: [...tenantIds] }, shard: { $ne: shard } }, { shard: 1 }).lean(),

    /** Lists one row more than the limit. `name`: a part of the tenants' names, in small or capital letters. */
    list: (query: ListQuery, name?: string): Promise<TenantRow[]> =>
      listRows(tenants, name === undefined ? {} : { name: containing(name) }, query),

    /** Suspends it for good. Safe to repeat. Undefined: no such tenant. */
    async close(tenantId: string, now: number): Promise<TenantRow | undefined> {
      await tenants.updateOne(
        { _id: tenantId, closedAt: { $exists: false } },
        { $set: { status: 'suspended', closedAt: now } },
      );
      return (await tenants.findById(tenantId).lean()) ?? undefined;
    },

    /** A closed tenant stays as it is. Undefined: no such tenant. */
    async update(tenantId: string, changes: TenantChanges): Promise<TenantRow | undefined> {
      const open = { _id: tenantId, closedAt: { $exists: false } };
      await tenants.updateOne(open, toFieldUpdate(changes, NULL_IS_A_VALUE));
      return (await tenants.findById(tenantId).lean()) ?? undefined;
    },
  };
}

/** Which shards there are: those that new tenants are spread over, and those that have tenants. */
export type ShardDirectory = ReturnType<typeof createShardDirectory>;

/** `shards`: how many new tenants are spread over. */
export function createShardDirectory(connection: Connection, shards: number) {
  const tenants = tenantModel(connection);
  const fresh = Array.from({ length: shards }, (_, shard) => shard);
  return {
    async list(): Promise<number[]> {
      const used = await tenants.distinct('shard');
      return [...new Set([...fresh, ...used])].sort((a, b) => a - b);
    },

    /** How many tenants each of the shards for new tenants has, by its number. */
    async tenantsByShard(): Promise<number[]> {
      const groups = await tenants.aggregate<{ _id: number; count: number }>([
        { $group: { _id: '$shard', count: { $sum: 1 } } },
      ]);
      const counts = new Map(groups.map(({ _id, count: tenantsThere }) => [_id, tenantsThere]));
      return fresh.map((shard) => counts.get(shard) ?? 0);
    },
  };
}
