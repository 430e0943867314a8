import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';
import mongoose from 'mongoose';

import { storeFault } from '../../../../api/http/error-handler.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';
import { RedisTimeoutError } from '../../../../shared/redis/redis-faults.ts';

function named(name: string, message = 'failed'): Error {
  return Object.assign(new Error(message), { name });
}

/** As ioredis tells of a transaction, with what its commands met. */
function discarded(...previousErrors: Error[]): Error {
  const error = named('ReplyError', 'EXECABORT Transaction discarded because of previous errors.');
  return Object.assign(error, { previousErrors });
}

/** What the handler passes on; it reads neither request nor response. */
function passedOn(error: unknown): unknown {
  let passed: unknown;
  void storeFault(error, {} as Request, {} as Response, (next?: unknown) => {
    passed = next;
  });
  return passed;
}

const { MongoBulkWriteError, MongoNetworkError, MongoServerError } = mongoose.mongo;
const serverError = (code: number) => new MongoServerError({ code, errmsg: 'refused' });
/** As the driver makes them; it counts on a result that nobody reads here. */
const bulkError = (error: object) => new MongoBulkWriteError(error as never, {} as never);

describe('a fault of a store', () => {
  it.each([
    ...[13, 18, 50, 262, 8_000, 11_601, 14_031, 10_107].map(serverError),
    bulkError(new MongoNetworkError('connection 2 to 127.0.0.1:27017 closed')),
    bulkError({ message: 'refused', code: 14_031, writeErrors: [{ code: 14_031, index: 0 }] }),
    bulkError({ message: 'E11000', code: 11_000, writeErrors: [{ code: 11_000 }, { code: 14_031 }] }),
    new Error('The batch was not stored', { cause: new Error('twice', { cause: serverError(50) }) }),
    named('MongoServerSelectionError'),
    named('MongoOperationTimeoutError'),
    named('MongoServerClosedError'),
    named('MongoStalePrimaryError'),
    named('MongoUnexpectedServerResponseError', 'Selected server does not support retryable writes'),
    new RedisTimeoutError('Redis has not answered an earlier call'),
    named('ReplyError', 'NOREPLICAS Not enough good replicas to write.'),
    named('ReplyError', "OOM command not allowed when used memory > 'maxmemory'."),
    named('ReplyError', 'LOADING Redis is loading the dataset in memory'),
    discarded(),
    discarded(named('ReplyError', 'LOADING Redis is loading the dataset in memory')),
    named('ReplyError', 'ERR max number of clients reached'),
    named('ReplyError', 'NOAUTH Authentication required.'),
    named('ReplyError', 'UNBLOCKED force unblock from blocking operation, instance state changed'),
    named('ReplyError', "READONLY You can't write against a read only replica."),
  ])('is 503 with Retry-After, and the operator sees the cause: %s', (fault) => {
    expect(passedOn(fault)).toMatchObject({ code: 'model_unavailable', retryAfterSeconds: 1, cause: fault });
  });

  it.each([
    named('ReplyError', 'WRONGTYPE Operation against a key holding the wrong kind of value'),
    named('ReplyError', 'ERR value is not an integer or out of range'),
    discarded(named('ReplyError', "ERR wrong number of arguments for 'set' command")),
    // The words of a client are no sign: only what it rejects a call with is.
    new Error('Connection is closed.'),
    named('AbortError', 'This operation was aborted'),
    new TypeError('x is not a function'),
    serverError(2),
    serverError(11_000),
    serverError(121),
    bulkError({ message: 'E11000', code: 11_000, writeErrors: [{ code: 11_000 }] }),
    new ServiceError('not_found', 'There is nothing.'),
    // As of a client that left amid its body: its socket has the words of one to a store.
    new ServiceError('invalid_request', 'The connection ended within the request body.', {
      cause: Object.assign(new Error('aborted'), { code: 'ECONNRESET' }),
    }),
    'a string',
  ])('a fault of a store is nothing else: %s', (error) => {
    expect(passedOn(error)).toBe(error);
  });
});
