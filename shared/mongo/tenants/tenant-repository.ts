import type { Connection } from 'mongoose';

import type { ListQuery } from '../../contracts/list-page.ts';
import { TENANT_FIELDS } from '../../contracts/tenant-fields.ts';
import type { TenantSettings, TenantSettingsChanges } from '../../contracts/tenant-fields.ts';
import { collection, toFieldUpdate, containing, listRows } from '../collection.ts';

/** The shard of Redis holds all of a tenant that is in flight; only a move changes it. */
export interface TenantPlace {
  _id: string;
  shard: number;
}

/** Ids are the public ones; times are milliseconds since the epoch. */
export interface TenantRow extends TenantSettings, TenantPlace {
  status: 'active' | 'suspended';
  /** Closed for good, and suspended from then on. */
  closedAt?: number;
  /** Present during a move; see tenant-moves.ts. */
  move?: TenantMove;
  /** Every new or changed key raises it, so that concurrent changes of the tenant's keys take turns. */
  keysIssued?: number;
  /** The same for webhooks. */
  webhooksMade?: number;
  createdAt: number;
}

/** The tenant's `shard` says whether the move has arrived. */
export interface TenantMove {
  from: number;
  to: number;
  /** Each process that takes the move over has its own token. */
  token: string;
  /** The process was last heard of then. */
  renewedAt: number;
}

export const tenantModel = collection<TenantRow>('tenants', [[{ shard: 1 }]]);

export type TenantChanges = TenantSettingsChanges & { status?: TenantRow['status'] | undefined };

export type TenantRepository = ReturnType<typeof createTenantRepository>;

export const CLOSED = 'This tenant is closed for good; create another one.';

/** Null means "no bound" for these, not the absence of a value. */
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

    elsewhere: (shard: number, tenantIds: readonly string[]): Promise<TenantPlace[]> =>
      tenants.find({ _id: { $in: [...tenantIds] }, shard: { $ne: shard } }, { shard: 1 }).lean(),

    /** One row more than the limit. `name` matches a part of a tenant's name, ignoring case. */
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

/** Shards that new tenants are spread over, and shards that have tenants. */
export type ShardDirectory = ReturnType<typeof createShardDirectory>;

/** New tenants are spread over this many `shards`. */
export function createShardDirectory(connection: Connection, shards: number) {
  const tenants = tenantModel(connection);
  const fresh = Array.from({ length: shards }, (_, shard) => shard);
  return {
    async list(): Promise<number[]> {
      const used = await tenants.distinct('shard');
      return [...new Set([...fresh, ...used])].sort((a, b) => a - b);
    },

    /** By the number of the shard, among those for new tenants. */
    async tenantsByShard(): Promise<number[]> {
      const groups = await tenants.aggregate<{ _id: number; count: number }>([
        { $group: { _id: '$shard', count: { $sum: 1 } } },
      ]);
      const counts = new Map(groups.map(({ _id, count: tenantsThere }) => [_id, tenantsThere]));
      return fresh.map((shard) => counts.get(shard) ?? 0);
    },
  };
}
