import type { ClientSession, Connection } from 'mongoose';

import { addUsageCounts } from '../../../domain/usage/compare-book.ts';
import type { LedgerGroup, RollUpGroup } from '../../../domain/usage/compare-book.ts';
import { BUCKET_MS } from '../../../domain/usage/roll-up.ts';
import type { BucketWidth, UsageCounts } from '../../../domain/usage/roll-up.ts';
import { ledgerModel } from './ledger-repository.ts';
import { usageRollUpModel } from './usage-repository.ts';

const DAY_MS = BUCKET_MS['1d'];
const WIDTHS: readonly BucketWidth[] = ['1d', '1h', '1m'];
const SCOPES = ['all', 'entity'] as const;
const startOfDay = (field: string) => ({ $subtract: [field, { $mod: [field, DAY_MS] }] });

/** A day with more requests has its roll-ups read an hour at a time: no call may take as long as its time limit. */
const REQUESTS_AT_ONCE = 100_000;

/** Reads a tenant's ledger and roll-ups as sums that MongoDB makes. */
export interface LedgerSums {
  /** Entries booked after `afterMs` and up to `throughMs`, by kind and day of acceptance. */
  groups(
    tenantId: string,
    createdAt: { afterMs: number; throughMs?: number },
    session?: ClientSession,
  ): Promise<LedgerGroup[]>;
  /** When the entry was booked that is `count` entries after `afterMs`; undefined: there are not so many. */
  endOfSlice(tenantId: string, afterMs: number, count: number): Promise<number | undefined>;
  /** The roll-ups of one day; `requests`: how many to expect. */
  rollUps(tenantId: string, dayMs: number, requests: number, session: ClientSession): Promise<RollUpGroup[]>;
  /** The days that have roll-ups. */
  rolledUpDays(tenantId: string): Promise<number[]>;
}

export function createLedgerSums(connection: Connection): LedgerSums {
  const ledger = ledgerModel(connection);
  const usageRollUps = usageRollUpModel(connection);

  async function rollUpsBetween(
    tenantId: string,
    startMs: { $gte: number; $lt: number },
    session: ClientSession,
  ): Promise<RollUpGroup[]> {
    const groups = await usageRollUps
      .aggregate<UsageCounts & { _id: Pick<RollUpGroup, 'width' | 'scope'> }>([
        { $match: { tenantId, width: { $in: [...WIDTHS] }, scope: { $in: [...SCOPES] }, startMs } },
        {
          $group: {
            _id: { width: '$width', scope: '$scope' },
            requests: { $sum: '$requests' },
            promptTokens: { $sum: '$promptTokens' },
            completionTokens: { $sum: '$completionTokens' },
            costMicro: { $sum: '$costMicro' },
            estimatedRequests: { $sum: '$estimatedRequests' },
          },
        },
      ])
      .session(session);
    return groups.map(({ _id, ...sums }) => ({ ..._id, ...sums }));
  }

  return {
    async groups(tenantId, { afterMs, throughMs }, session) {
      const createdAt = { $gt: afterMs, ...(throughMs === undefined ? {} : { $lte: throughMs }) };
      const groups = await ledger
        .aggregate<
          UsageCounts & { _id: Pick<LedgerGroup, 'type' | 'mode'> & { dayMs?: number | null }; amountMicro: number }
        >([
          { $match: { tenantId, createdAt } },
          {
            $group: {
              _id: { type: '$type', mode: '$mode', dayMs: startOfDay('$acceptedAt') },
              amountMicro: { $sum: '$amountMicro' },
              requests: { $sum: 1 },
              promptTokens: { $sum: '$promptTokens' },
              completionTokens: { $sum: '$completionTokens' },
              estimatedRequests: { $sum: { $cond: ['$estimated', 1, 0] } },
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
    },

    async endOfSlice(tenantId, afterMs, count) {
      // Both fields are in the index by tenant and time, so no entry itself is read.
      const row = await ledger
        .findOne({ tenantId, createdAt: { $gt: afterMs } }, { _id: 0, createdAt: 1 })
        .sort({ createdAt: 1 })
        .skip(count - 1)
        .lean();
      return row?.createdAt;
    },

    async rollUps(tenantId, dayMs, requests, session) {
      const stepMs = requests > REQUESTS_AT_ONCE ? BUCKET_MS['1h'] : DAY_MS;
      const sums = new Map<string, RollUpGroup>();
      for (let fromMs = dayMs; fromMs < dayMs + DAY_MS; fromMs += stepMs) {
        for (const group of await rollUpsBetween(tenantId, { $gte: fromMs, $lt: fromMs + stepMs }, session)) {
          const name = `${group.width} ${group.scope}`;
          const sum = sums.get(name);
          if (sum === undefined) sums.set(name, group);
          else addUsageCounts(sum, group);
        }
      }
      return [...sums.values()];
    },

    async rolledUpDays(tenantId) {
      const days = await usageRollUps.aggregate<{ _id: number }>([
        { $match: { tenantId, width: '1d' } },
        { $group: { _id: '$startMs' } },
      ]);
      return days.map((day) => day._id);
    },
  };
}
