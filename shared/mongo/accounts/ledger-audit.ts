import type { ClientSession, Connection, Model } from 'mongoose';

import type { LedgerGroup, RollUpGroup } from '../../domain/compare-ledger.ts';
import { addUsageCounts, BUCKET_MS } from '../../domain/roll-up.ts';
import type { BucketWidth, UsageCounts } from '../../domain/roll-up.ts';
import { KIND_NAMES } from '../../contracts/events.ts';
import { collection, definedOf } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import { ledgerModel } from './ledger-repository.ts';
import { summedCounts, usageRollUpModel } from './usage-repository.ts';
import type { UsageRollUpRow } from './usage-repository.ts';

/**
 * A tenant's ledger added up to a time. Later entries have later times (see `moveAccount`) and amounts never change, so
 * sums need no second reading.
 */
export interface LedgerCheckpoint {
  /** The sums have every entry with a `createdAt` up to here; milliseconds since the epoch. */
  throughMs: number;
  groups: LedgerGroup[];
  /** Requests were added to these days of acceptance since their roll-ups were last found to agree. */
  uncheckedDaysMs: number[];
}

export interface LedgerCheckpointRow extends Omit<LedgerCheckpoint, 'groups'> {
  _id: string;
  groups: (Omit<LedgerGroup, 'mode' | 'dayMs'> & { mode?: string | undefined; dayMs?: number | undefined })[];
}

export const ledgerCheckpointModel = collection<LedgerCheckpointRow>('ledger_checkpoints');

export const NO_CHECKPOINT: LedgerCheckpoint = { throughMs: -1, groups: [], uncheckedDaysMs: [] };

export type LedgerCheckpoints = ReturnType<typeof createLedgerCheckpoints>;

export function createLedgerCheckpoints(connection: Connection) {
  const ledgerCheckpoints = ledgerCheckpointModel(connection);
  return {
    async read(tenantId: string): Promise<LedgerCheckpoint | undefined> {
      const row = await ledgerCheckpoints.findById(tenantId).lean();
      if (row === null) return undefined;
      const { throughMs, uncheckedDaysMs } = row;
      return {
        throughMs,
        uncheckedDaysMs,
        groups: row.groups.map((each) => ({ mode: undefined, dayMs: undefined, ...each })),
      };
    },

    /** Replaces the checkpoint that ends at `fromMs`; false: another process has moved it, and nothing changes. */
    async advance(
      tenantId: string,
      fromMs: number,
      { throughMs, groups, uncheckedDaysMs }: LedgerCheckpoint,
    ): Promise<boolean> {
      const isFirst = fromMs === NO_CHECKPOINT.throughMs;
      try {
        const { matchedCount, upsertedCount } = await ledgerCheckpoints.updateOne(
          { _id: tenantId, throughMs: fromMs },
          { $set: { throughMs, groups: groups.map(definedOf), uncheckedDaysMs } },
          { upsert: isFirst },
        );
        return matchedCount + upsertedCount > 0;
      } catch (error) {
        // There is one already that ends elsewhere.
        if (isDuplicateKey(error)) return false;
        throw error;
      }
    },

    /** Afterwards the ledger is added up anew. */
    async discard(tenantId: string): Promise<void> {
      await ledgerCheckpoints.deleteOne({ _id: tenantId });
    },
  };
}

const DAY_MS = BUCKET_MS['1d'];
const WIDTHS: readonly BucketWidth[] = ['1d', '1h', '1m'];
const SCOPES = ['all', 'entity'] as const;
/** An entry that gives a charge back takes its request out again. */
const sign = { $cond: [{ $eq: ['$type', 'usage'] }, 1, -1] };
const startOfDay = (field: string) => ({ $subtract: [field, { $mod: [field, DAY_MS] }] });

/** Roll-ups of a day with more requests are read an hour at a time, so that no call reaches its time limit. */
const REQUESTS_AT_ONCE = 100_000;

async function rollUpsBetween(
  usageRollUps: Model<UsageRollUpRow>,
  tenantId: string,
  startMs: { $gte: number; $lt: number },
  session: ClientSession,
): Promise<RollUpGroup[]> {
  const groups = await usageRollUps
    .aggregate<UsageCounts & { _id: RollUpGroup }>([
      { $match: { tenantId, width: { $in: [...WIDTHS] }, scope: { $in: [...SCOPES] }, startMs } },
      { $group: { _id: { width: '$width', scope: '$scope' }, ...summedCounts } },
    ])
    .session(session);
  return groups.map(({ _id, ...sums }) => ({ ..._id, ...sums }));
}

export type LedgerSums = ReturnType<typeof createLedgerSums>;

async function sumRollUps(
  usageRollUps: ReturnType<typeof usageRollUpModel>,
  tenantId: string,
  dayMs: number,
  requests: number,
  session: ClientSession,
): Promise<RollUpGroup[]> {
  const stepMs = requests > REQUESTS_AT_ONCE ? BUCKET_MS['1h'] : DAY_MS;
  const sums = new Map<string, RollUpGroup>();
  for (let fromMs = dayMs; fromMs < dayMs + DAY_MS; fromMs += stepMs) {
    for (const group of await rollUpsBetween(usageRollUps, tenantId, { $gte: fromMs, $lt: fromMs + stepMs }, session)) {
      const name = `${group.width} ${group.scope}`;
      const sum = sums.get(name);
      if (sum === undefined) sums.set(name, group);
      else addUsageCounts(sum, group);
    }
  }
  return [...sums.values()];
}

async function sumGroups(
  ledger: ReturnType<typeof ledgerModel>,
  tenantId: string,
  { afterMs, throughMs }: { afterMs: number; throughMs?: number },
  session?: ClientSession,
): Promise<LedgerGroup[]> {
  const createdAt = { $gt: afterMs, ...(throughMs === undefined ? {} : { $lte: throughMs }) };
  const groups = await ledger
    .aggregate<UsageCounts & { _id: LedgerGroup & { dayMs?: number | null }; amountMicro: number }>([
      { $match: { tenantId, createdAt } },
      {
        $group: {
          _id: { type: '$type', mode: '$mode', dayMs: startOfDay('$acceptedAt') },
          amountMicro: { $sum: '$amountMicro' },
          requests: { $sum: sign },
          promptTokens: { $sum: '$promptTokens' },
          completionTokens: { $sum: '$completionTokens' },
          ...Object.fromEntries(KIND_NAMES.map((name) => [name, { $sum: `$${name}` }])),
          estimatedRequests: { $sum: { $cond: ['$estimated', sign, 0] } },
          spendNano: { $sum: '$spend.nano' },
        },
      },
    ])
    .session(session ?? null);
  return groups.map(({ _id: { type, mode, dayMs }, ...sums }) => ({
    ...sums,
    type,
    mode: mode ?? undefined,
    dayMs: dayMs ?? undefined,
    costMicro: 0 - sums.amountMicro,
  }));
}

export function createLedgerSums(connection: Connection) {
  const ledger = ledgerModel(connection);
  const usageRollUps = usageRollUpModel(connection);

  return {
    groups: (
      tenantId: string,
      range: { afterMs: number; throughMs?: number },
      session?: ClientSession,
    ): Promise<LedgerGroup[]> => sumGroups(ledger, tenantId, range, session),

    /** The booking time of the entry `count` entries after `afterMs`; undefined: there are not so many. */
    async endOfSlice(tenantId: string, afterMs: number, count: number): Promise<number | undefined> {
      // The index by tenant and time has both fields, so no entry itself is read.
      const row = await ledger
        .findOne({ tenantId, createdAt: { $gt: afterMs } }, { _id: 0, createdAt: 1 })
        .sort({ createdAt: 1 })
        .skip(count - 1)
        .lean();
      return row?.createdAt;
    },

    rollUps: (tenantId: string, dayMs: number, requests: number, session: ClientSession): Promise<RollUpGroup[]> =>
      sumRollUps(usageRollUps, tenantId, dayMs, requests, session),

    async rolledUpDays(tenantId: string): Promise<number[]> {
      const days = await usageRollUps.aggregate<{ _id: number }>([
        { $match: { tenantId, width: '1d' } },
        { $group: { _id: '$startMs' } },
      ]);
      return days.map((day) => day._id);
    },
  };
}
