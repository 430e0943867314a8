import { expect, it } from '@jest/globals';
import mongoose from 'mongoose';

import { isDuplicateKey } from '../../../../shared/mongo/connection.ts';
import { isBadDocument, isMongoAway } from '../../../../shared/mongo/faults.ts';

const { BSON, MongoBulkWriteError, MongoNetworkError, MongoServerError } = mongoose.mongo;
const serverError = (code: number, errorLabels: string[] = []) =>
  new MongoServerError({ code, errmsg: 'refused', errorLabels });
/** As the driver makes them; it counts on a result that nobody reads here. */
const bulkError = (error: object) => new MongoBulkWriteError(error as never, {} as never);

it.each([
  serverError(112, ['TransientTransactionError']),
  serverError(14_031),
  new mongoose.Error('Connection was force closed'),
  new mongoose.Error('Connection operation buffering timed out after 10000ms'),
  new mongoose.Error(
    'Cannot call `keys.findOne()` before initial connection is complete if `bufferCommands = false`. Make sure …',
  ),
  bulkError(new MongoNetworkError('closed')),
  Object.assign(new Error('This socket has been ended by the other party'), { code: 'EPIPE' }),
])("a MongoDB that cannot serve is nobody's fault: %s", (error) => {
  expect([isMongoAway(error), isBadDocument(error)]).toEqual([true, false]);
});

it.each([serverError(121), serverError(10_334), new BSON.BSONError('cyclic'), bulkError({ message: 'x', code: 121 })])(
  'a document that can never be stored is at fault: %s',
  (error) => {
    expect([isMongoAway(error), isBadDocument(error)]).toEqual([false, true]);
  },
);

it.each([
  serverError(2),
  serverError(11_000),
  new TypeError('x is not a function'),
  // Misuse: the same call fails tomorrow, too.
  new mongoose.Error('Model.find() no longer accepts a callback'),
  new mongoose.Error.CastError('Number', 'many', 'credits'),
  undefined,
  'a text',
])('what is on neither list says nothing: %s', (error) => {
  expect([isMongoAway(error), isBadDocument(error)]).toEqual([false, false]);
});

it('a bulk write is a duplicate only where every write of it was', () => {
  const both = (...codes: number[]) =>
    bulkError({ message: 'E11000', code: 11_000, writeErrors: codes.map((code) => ({ code })) });
  expect(isDuplicateKey(serverError(11_000))).toBe(true);
  expect(isDuplicateKey(both(11_000, 11_000))).toBe(true);
  expect(isDuplicateKey(both(11_000, 14_031))).toBe(false);
});
