import { expect, it } from '@jest/globals';

import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

/** Enough for the first try to be under way when the second comes; a call may take 10 s on a busy machine. */
const ROWS = 400;
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('retries')));

/** Two sessions that the server takes for one: what a driver sends again while the first try is under way. */
function twoTries() {
  const sessions = [mongo.getClient().startSession(), mongo.getClient().startSession()] as const;
  const [first, second] = sessions.map(({ serverSession }) => serverSession);
  if (first === undefined || second === undefined) throw new Error('A session has no server session');
  second.id = first.id;
  second.txnNumber = first.txnNumber;
  return sessions;
}

it('does a write once that is sent again while the first try is under way, and answers both alike', async () => {
  const rows = mongo.collection<{ _id: number; sum: number }>('rows');
  const [first, second] = twoTries();
  const documents = Array.from({ length: ROWS }, (_, _id) => ({ _id, sum: 0 }));

  const inserted = await Promise.all([first, second].map((session) => rows.insertMany(documents, { session })));
  expect(inserted.map(({ insertedCount }) => insertedCount)).toEqual([ROWS, ROWS]);

  const additions = documents.map(({ _id }) => ({ updateOne: { filter: { _id }, update: { $inc: { sum: 1 } } } }));
  const added = await Promise.all([first, second].map((session) => rows.bulkWrite(additions, { session })));
  expect(added.map(({ modifiedCount }) => modifiedCount)).toEqual([ROWS, ROWS]);
  expect(await rows.countDocuments({ sum: 1 })).toBe(ROWS);

  await Promise.all([first.endSession(), second.endSession()]);
});
