import type { ClientSession } from 'mongoose';

import { MINUTES_KEPT_MS, rollUp, rollUpIdOf } from '../../../domain/usage/roll-up.ts';
import type { BookedRequest, BucketWidth } from '../../../domain/usage/roll-up.ts';
import type { Models } from '../models.ts';

/** Adds requests that were booked in the same transaction to the tenants' usage, in buckets of the given widths. */
export async function addUsage(
  { usageRollUps }: Pick<Models, 'usageRollUps'>,
  records: readonly BookedRequest[],
  session: ClientSession,
  widths: readonly BucketWidth[] = ['1m', '1h', '1d'],
): Promise<void> {
  const rows = rollUp(records).filter(({ key }) => widths.includes(key.width));
  const updates = rows.map(({ key, counts }) => {
    const expiry = key.width === '1m' ? { expiresAt: new Date(key.startMs + MINUTES_KEPT_MS) } : {};
    return {
      updateOne: {
        filter: { _id: rollUpIdOf(key) },
        update: { $inc: { ...counts }, $setOnInsert: { ...key, ...expiry } },
        upsert: true,
      },
    };
  });
  await usageRollUps.bulkWrite(updates, { session, ordered: false });
}
