import type { ClientSession, Connection, Model } from 'mongoose';

import { kindsOf } from '../../contracts/events.ts';
import { unknownCursor } from '../../contracts/list-page.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import type { SearchedSpace } from '../../contracts/space.ts';
import { ALL_COUNTS, MINUTES_KEPT_MS, rollUp, rollUpIdOf } from '../../domain/roll-up.ts';
import type { BucketWidth, BookedRequest, RollUpKey, UsageCounts } from '../../domain/roll-up.ts';
import { collection, listRows, inSpace } from '../collection.ts';
import { ledgerIdOf, ledgerModel } from './ledger-repository.ts';
import type { LedgerRow } from './ledger-repository.ts';

/** The usage of one bucket of time by key, tier, mode, endpoint and target; `_id` names all of them (rollUpIdOf). */
export interface UsageRollUpRow extends RollUpKey, UsageCounts {
  _id: string;
  /** Rows of a minute only: MongoDB deletes them then. */
  expiresAt?: Date;
}

export const usageRollUpModel = collection<UsageRollUpRow>('usage_rollups', [
  [{ tenantId: 1, width: 1, scope: 1, startMs: 1 }],
  [{ tenantId: 1, width: 1, entityId: 1, startMs: 1 }],
  [{ width: 1, scope: 1, startMs: 1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** Usage can be told apart by these. */
export type UsageDimension =
  'tenantId' | 'keyId' | 'tier' | 'entityId' | 'mode' | 'endpoint' | 'provider' | 'model' | 'currency';

/** The values that are wanted of a dimension; absent: all. */
export type UsageFilter = Partial<Record<UsageDimension, readonly string[]>>;

interface UsageQuery {
  width: BucketWidth;
  /** From this time on, before that one; milliseconds since the epoch. */
  startMs: number;
  endMs: number;
  groupBy: readonly UsageDimension[];
  filter: UsageFilter;
  /** The most sums that are wanted. */
  limit: number;
}

/** The sums of one bucket and one group. */
export type UsageSum = UsageCounts & { startMs: number } & Partial<Record<UsageDimension, string>>;

/** Every call takes the space first and puts it into its filter. */
export type UsageRepository = ReturnType<typeof createUsageRepository>;

const REQUEST_ID = /^req_[0-9A-Za-z]{24}$/;

/** The counts of a group of rows, for an aggregation. */
export const summedCounts: Record<keyof UsageCounts, { $sum: string }> = Object.fromEntries(
  ALL_COUNTS.map((name) => [name, { $sum: `$${name}` }]),
) as Record<keyof UsageCounts, { $sum: string }>;

type Wanted = string | { readonly $in: readonly string[] };

function filterOf(filter: UsageFilter): Record<string, Wanted> {
  const wanted = Object.entries(filter).map(([dimension, values]): [string, Wanted] => {
    const [only = '', ...more] = values;
    return [dimension, more.length === 0 ? only : { $in: values }];
  });
  return Object.fromEntries(wanted);
}

/**
 * Rows without the entity are far fewer, so they serve whatever does not ask for it. Rows of a named entity have an
 * index of their own, and are of the other scope anyway.
 */
function scopeOf({ groupBy, filter }: UsageQuery): { scope?: UsageRollUpRow['scope'] } {
  if (filter.entityId !== undefined) return {};
  return { scope: groupBy.includes('entityId') ? 'entity' : 'all' };
}

/** A filter may ask for another mode than that of the space. */
function isElsewhere({ mode }: SearchedSpace, filter: UsageQuery['filter']): boolean {
  return mode !== 'any' && filter.mode?.includes(mode) === false;
}

export function createUsageRepository(connection: Connection) {
  const usageRollUps = usageRollUpModel(connection);
  const ledger = ledgerModel(connection);
  return {
    /** By time, buckets without usage left out; one more than the limit where there are more. */
    async sums(space: SearchedSpace | 'all tenants', query: UsageQuery): Promise<UsageSum[]> {
      if (space !== 'all tenants' && isElsewhere(space, query.filter)) return [];
      const { width, startMs, endMs, groupBy, filter, limit } = query;
      const dimensions = ['startMs', ...groupBy].map((name) => [name, `$${name}`] as const);
      const groups = await usageRollUps.aggregate<{ _id: UsageSum } & UsageSum>([
        {
          $match: {
            width,
            ...scopeOf(query),
            startMs: { $gte: startMs, $lt: endMs },
            ...filterOf(filter),
            ...(space === 'all tenants' ? {} : inSpace(space)),
          },
        },
        { $group: { _id: Object.fromEntries(dimensions), ...summedCounts } },
        // None are left where each was given back.
        { $match: { requests: { $gt: 0 } } },
        { $sort: { _id: 1 } },
        { $limit: limit + 1 },
      ]);
      return groups.map(({ _id, ...sums }) => ({ ..._id, ...sums }));
    },

    /** Single requests by the time they were booked; one row more than the limit. The cursor is a request's id. */
    async requests(space: SearchedSpace, filter: UsageFilter, { after, ...query }: ListQuery): Promise<LedgerRow[]> {
      const isNowhere = isElsewhere(space, filter);
      if (after !== undefined && (isNowhere || !REQUEST_ID.test(after))) throw unknownCursor();
      if (isNowhere) return [];
      const cursor = after === undefined ? {} : { after: ledgerIdOf(after) };
      const charged = { type: 'usage', refunded: { $exists: false }, ...filterOf(filter), ...inSpace(space) } as const;
      return listRows(ledger, charged, { ...query, ...cursor });
    },
  };
}

/** A request as its usage counts it; undefined: the entry is of none. */
export function toBooked(row: LedgerRow): BookedRequest | undefined {
  const { tenantId, keyId, tier, mode, endpoint, acceptedAt, entityId } = row;
  if (keyId === undefined || tier === undefined || mode === undefined || endpoint === undefined) return undefined;
  if (acceptedAt === undefined) return undefined;
  return {
    tenantId,
    keyId,
    tier,
    mode,
    endpoint,
    acceptedAt,
    ...(entityId === undefined ? {} : { entityId }),
    promptTokens: row.promptTokens ?? 0,
    completionTokens: row.completionTokens ?? 0,
    ...kindsOf(row),
    costMicro: 0 - row.amountMicro,
    estimated: row.estimated ?? false,
    provider: row.provider ?? '',
    model: row.model ?? '',
    ...(row.spend === undefined ? {} : { spend: row.spend }),
  };
}

/**
 * Adds requests to the tenants' usage in the transaction that books them, in buckets of the given widths; `sign` −1 takes them
 * out again.
 */
export async function addUsage(
  usageRollUps: Model<UsageRollUpRow>,
  records: readonly BookedRequest[],
  session: ClientSession,
  { widths = ['1m', '1h', '1d'], sign = 1 }: { widths?: readonly BucketWidth[]; sign?: 1 | -1 } = {},
): Promise<void> {
  const rows = rollUp(records).filter(({ key }) => widths.includes(key.width));
  const updates = rows.map(({ key, counts }) => {
    const expiry = key.width === '1m' ? { expiresAt: new Date(key.startMs + MINUTES_KEPT_MS) } : {};
    const added = Object.entries(counts).map(([name, count]) => [name, sign < 0 ? 0 - count : count]);
    return {
      updateOne: {
        filter: { _id: rollUpIdOf(key) },
        update: { $inc: Object.fromEntries(added) as UsageCounts, $setOnInsert: { ...key, ...expiry } },
        upsert: true,
      },
    };
  });
  await usageRollUps.bulkWrite(updates, { session, ordered: false });
}
