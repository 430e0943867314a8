import { setTimeout as pause } from 'node:timers/promises';

import mongoose from 'mongoose';
import type { Connection } from 'mongoose';

import type { Closer } from '../lifecycle/closer.ts';
import type { Logger } from '../logging/logger.ts';
import { isMongoAway, isMongoUnreachable, mayReturn, mongoStartFault } from './faults.ts';

/** Every repository is made of these. */
export type MongoConnection = Connection;

const SERVER_SELECTION_TIMEOUT_MS = 1_500;
const CONNECT_TIMEOUT_MS = 5_000;
/** MongoDB's code for a violated unique index. */
const DUPLICATE_KEY = 11_000;

/**
 * Whether the URI leaves a write with less than a majority. Such a write is rolled back when another server becomes the
 * primary, and whoever wrote it has gone on: settlement deletes what it has booked from Redis.
 */
function allowsMinority(uri: string): boolean {
  return /^[01]?$/.test(/[?&]w=([^&]*)/.exec(uri)?.[1] ?? '');
}

/**
 * A connection of its own, no global state; each try of a call is limited to `callTimeoutMs`.
 * Rejects with one sentence when MongoDB cannot be reached, which says what is wrong
 * where that can be told. */
export async function connectMongo(uri: string, { callTimeoutMs = 10_000 } = {}): Promise<Connection> {
  const connection = mongoose.createConnection(uri, {
    serverSelectionTimeoutMS: SERVER_SELECTION_TIMEOUT_MS,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    // A database that is away is a 503, never a hang (docs/spec.md#stores-away). The driver tries once more.
    socketTimeoutMS: callTimeoutMs,
    waitQueueTimeoutMS: callTimeoutMs,
    // MongoDB journals what a majority has, by default. A stricter setting of the URI stays.
    ...(allowsMinority(uri) ? { w: 'majority' } : {}),
    readPreference: 'primary',
    autoIndex: false,
    autoCreate: false,
    bufferCommands: false,
  });
  try {
    return await connection.asPromise();
  } catch (cause) {
    await connection.close().catch(() => undefined);
    throw new MongoStartError(mongoStartFault(cause), { cause });
  }
}

/** No connection could be made; the message says what to check. */
class MongoStartError extends Error {}

const AGAIN_MS = 1_000;

/** A MongoDB that is away is waited for, and that is said once; any other fault rejects. */
export async function onceMongoIsThere<Result>(
  act: () => Promise<Result>,
  { log, onAway }: { log: Logger; onAway?: (() => void) | undefined },
): Promise<Result> {
  for (let isSaid = false; ; isSaid = true) {
    try {
      return await act();
    } catch (error) {
      const isStart = error instanceof MongoStartError;
      // The server may go while it is being prepared.
      if (!(isStart ? mayReturn(error.message) : isMongoUnreachable(error))) throw error;
      if (!isSaid) {
        log.warn(`${isStart ? error.message : 'MongoDB has gone.'} The start waits for it.`);
        onAway?.();
      }
      await pause(AGAIN_MS);
    }
  }
}

/** A broken connection to anything else has the same codes as one to MongoDB, but none of these names. */
const isAway = (error: unknown) =>
  error instanceof Error && /^(Mongo|PoolCleared)/.test(error.name) && isMongoAway(error);

/** Makes the log count what an outage of MongoDB causes. */
export function watchMongo(mongo: Connection, { log, closer }: { log: Logger; closer: Closer }): void {
  const ping = () => mongo.db?.admin().ping() ?? Promise.reject(new Error('MongoDB is not connected'));
  closer.defer('watch of MongoDB', log.watchStore({ name: 'MongoDB', isFault: isAway, ping }));
}

/** The code that MongoDB gives an error, if it is one of its own. */
export function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

/** A violated unique index, and nothing else: a bulk write may have failed for another reason as well. */
export function isDuplicateKey(error: unknown): boolean {
  const isOne = (each: unknown) => codeOf(each) === DUPLICATE_KEY;
  const others = error instanceof mongoose.mongo.MongoBulkWriteError ? [error.writeErrors].flat() : [];
  return isOne(error) && others.every(isOne);
}
