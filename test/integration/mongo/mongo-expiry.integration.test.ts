import { expect, it } from '@jest/globals';

import { codeOf } from '../../../shared/mongo/connection.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const COMMAND_NOT_FOUND = 59;
const LATER = new Date(Date.now() + 24 * 3_600_000);
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('expiry')));

/** What the store does by itself once a minute. */
async function removeExpired(): Promise<void> {
  const admin = mongo.getClient().db('admin');
  try {
    await admin.command({ 'secantusAdmin.pruneTtl': 1 });
  } catch (error) {
    // MongoDB itself can only be told to do it more often.
    if (codeOf(error) !== COMMAND_NOT_FOUND) throw error;
    await admin.command({ setParameter: 1, ttlMonitorSleepSecs: 1 });
  }
}

it('has what expired removed by a TTL index, and keeps what expires later or never', async () => {
  const rows = mongo.collection<{ _id: number; removeAt?: Date | null; at?: Date }>('rows');
  await rows.createIndexes([
    { key: { removeAt: 1 }, expireAfterSeconds: 0 },
    { key: { at: 1 }, expireAfterSeconds: 3_600 },
  ]);
  const now = Date.now();
  await rows.insertMany([
    { _id: 1, removeAt: new Date(now - 1_000) },
    { _id: 2, removeAt: LATER },
    { _id: 3 },
    { _id: 4, removeAt: null },
    { _id: 5, removeAt: LATER, at: new Date(now - 3_601_000) },
    { _id: 6, removeAt: LATER, at: new Date(now - 3_000_000) },
  ]);

  await removeExpired();

  const kept = async () => (await rows.find().sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
  const left = await waitFor(async () => {
    const ids = await kept();
    return ids.length > 4 ? undefined : ids;
  }, 'what has expired to be gone');
  expect(left).toEqual([2, 3, 4, 6]);
});
