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
  /** For rows of a minute only, which MongoDB deletes then. */
  expiresAt?: Date;
}

export const usageRollUpModel = collection<UsageRollUpRow>('usage_rollups', [
  [{ tenantId: 1, width: 1, scope: 1, startMs: 1 }],
  [{ tenantId: 1, width: 1, entityId: 1, startMs: 1 }],
  [{ width: 1, scope: 1, startMs: 1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

export type UsageDimension =
  'tenantId' | 'keyId' | 'tier' | 'entityId' | 'mode' | 'endpoint' | 'provider' | 'model' | 'currency';

/** Absent dimensions match all. */
export type UsageFilter = Partial<Record<UsageDimension, readonly string[]>>;

interface UsageQuery {
  width: BucketWidth;
  /** Includes the start, excludes the end; milliseconds since the epoch. */
  startMs: number;
  endMs: number;
  groupBy: readonly UsageDimension[];
  filter: UsageFilter;
  limit: number;
}

export type UsageSum = UsageCounts & { startMs: number } & Partial<Record<UsageDimension, string>>;

/** Every call takes the space first and puts it into its filter. */
export type UsageRepository = ReturnType<typeof createUsageRepository>;

const REQUEST_ID = /^req_[0-9A-Za-z]{24}$/;

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
 * Rows without the entity are far fewer, so they serve queries that do not ask for it. Rows of a named entity have an
 * index of their own, and are of the other scope anyway.
 */
function scopeOf({ groupBy, filter }: UsageQuery): { scope?: UsageRollUpRow['scope'] } {
  if (filter.entityId !== undefined) return {};
  return { scope: groupBy.includes('entityId') ? 'entity' : 'all' };
}

function isElsewhere({ mode }: SearchedSpace, filter: UsageQuery['filter']): boolean {
  return mode !== 'any' && filter.mode?.includes(mode) === false;
}

export function createUsageRepository(connection: Connection) {
  const usageRollUps = usageRollUpModel(connection);
  const ledger = ledgerModel(connection);
  return {
    /** By time, without empty buckets; one more than the limit where there are more. */
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
        // No requests are left where each was given back.
        { $match: { requests: { $gt: 0 } } },
        { $sort: { _id: 1 } },
        { $limit: limit + 1 },
      ]);
      return groups.map(({ _id, ...sums }) => ({ ..._id, ...sums }));
    },

    /** By booking time; one row more than the limit. The cursor is a request's id. */
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

/** Undefined: the entry belongs to no request. */
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

/** Runs in the transaction that books the requests, for buckets of the given widths; `sign` −1 takes them out again. */
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
