import type { ClientSession, Connection } from 'mongoose';

import { KIND_NAMES } from '../../contracts/events.ts';
import { BUCKET_MS, ROLL_UP_DIMENSIONS, rollUpIdOf } from '../../domain/roll-up.ts';
import type { BookedRequest, BucketWidth, RollUpKey, UsageCounts } from '../../domain/roll-up.ts';
import { ledgerModel } from './ledger-repository.ts';
import { addUsage, summedCounts, toBooked, usageRollUpModel } from './usage-repository.ts';

const READ_AT_ONCE = 500;
/** Requests that a transaction takes; a day with more is rebuilt an hour at a time. */
const REQUESTS_AT_ONCE = 20_000;

const KINDS: ReadonlySet<string> = new Set(KIND_NAMES);
const DAY_MS = BUCKET_MS['1d'];
const HOUR_MS = BUCKET_MS['1h'];

/** Rebuilds a day's usage roll-ups from the ledger; `requests`: of the day. Safe to repeat. */
export type RebuildUsage = (tenantId: string, dayMs: number, requests: number) => Promise<void>;

async function rebuildFromLedger(
  usageRollUps: ReturnType<typeof usageRollUpModel>,
  ledger: ReturnType<typeof ledgerModel>,
  tenantId: string,
  during: { $gte: number; $lt: number },
  widths: readonly BucketWidth[],
  session: ClientSession,
): Promise<void> {
  await usageRollUps.deleteMany({ tenantId, width: { $in: [...widths] }, startMs: during }, { session });
  let page: BookedRequest[] = [];
  const rows = ledger
    .find({ tenantId, type: 'usage', refunded: { $exists: false }, acceptedAt: during }, null, { session })
    .lean()
    .cursor({ batchSize: READ_AT_ONCE });
  for await (const row of rows) {
    const booked = toBooked(row);
    if (booked !== undefined) page.push(booked);
    if (page.length < READ_AT_ONCE) continue;
    await addUsage(usageRollUps, page, session, { widths });
    page = [];
  }
  if (page.length > 0) await addUsage(usageRollUps, page, session, { widths });
}

async function rebuildFromHours(
  usageRollUps: ReturnType<typeof usageRollUpModel>,
  tenantId: string,
  dayMs: number,
  session: ClientSession,
): Promise<void> {
  await usageRollUps.deleteMany({ tenantId, width: '1d', startMs: dayMs }, { session });
  const sums: AsyncIterable<UsageCounts & { _id: Pick<RollUpKey, (typeof ROLL_UP_DIMENSIONS)[number]> }> = usageRollUps
    .aggregate([
      { $match: { tenantId, width: '1h', startMs: { $gte: dayMs, $lt: dayMs + DAY_MS } } },
      { $group: { _id: Object.fromEntries(ROLL_UP_DIMENSIONS.map((name) => [name, `$${name}`])), ...summedCounts } },
    ])
    .option({ session, allowDiskUse: true })
    .cursor({ batchSize: READ_AT_ONCE });
  for await (const { _id, ...counts } of sums) {
    const key = { tenantId, width: '1d' as const, startMs: dayMs, ..._id };
    // A kind of tokens that no request had is absent, as where requests were added one by one.
    const booked = Object.entries(counts).filter(([name, sum]) => sum !== 0 || !KINDS.has(name));
    await usageRollUps.insertMany([{ _id: rollUpIdOf(key), ...key, ...Object.fromEntries(booked) }], {
      session,
      lean: true,
    });
  }
}

export function createRebuildUsage(connection: Connection, { requestsAtOnce = REQUESTS_AT_ONCE } = {}): RebuildUsage {
  const ledger = ledgerModel(connection);
  const usageRollUps = usageRollUpModel(connection);

  return async (tenantId, dayMs, requests) => {
    if (requests <= requestsAtOnce) {
      const during = { $gte: dayMs, $lt: dayMs + DAY_MS };
      await connection.transaction((session) =>
        rebuildFromLedger(usageRollUps, ledger, tenantId, during, ['1m', '1h', '1d'], session),
      );
      return;
    }
    for (let fromMs = dayMs; fromMs < dayMs + DAY_MS; fromMs += HOUR_MS) {
      const during = { $gte: fromMs, $lt: fromMs + HOUR_MS };
      await connection.transaction((session) =>
        rebuildFromLedger(usageRollUps, ledger, tenantId, during, ['1m', '1h'], session),
      );
    }
    await connection.transaction((session) => rebuildFromHours(usageRollUps, tenantId, dayMs, session));
  };
}
