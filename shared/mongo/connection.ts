import { setTimeout as pause } from 'node:timers/promises';

import mongoose from 'mongoose';
import type { Connection } from 'mongoose';

import type { Closer } from '../lifecycle/closer.ts';
import type { Logger } from '../logging/logger.ts';
import { isMongoAway, isMongoUnreachable, mayReturn, mongoStartFault } from './faults.ts';

export type MongoConnection = Connection;

const SERVER_SELECTION_TIMEOUT_MS = 1_500;
const CONNECT_TIMEOUT_MS = 5_000;
/** MongoDB's code for a violated unique index. */
const DUPLICATE_KEY = 11_000;

/**
 * True: the URI lets fewer servers than a majority confirm a write. Another primary rolls such a write back after its
 * writer went on: settlement deletes what it has booked from Redis.
 */
function allowsMinority(uri: string): boolean {
  return /^[01]?$/.test(/[?&]w=([^&]*)/.exec(uri)?.[1] ?? '');
}

/**
 * Keeps no global state; `callTimeoutMs` limits each try of a call. Rejects with one sentence, with the fault where
 * known, when MongoDB cannot be reached.
 */
export async function connectMongo(uri: string, { callTimeoutMs = 10_000 } = {}): Promise<Connection> {
  const connection = mongoose.createConnection(uri, {
    serverSelectionTimeoutMS: SERVER_SELECTION_TIMEOUT_MS,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    // A database that is away is a 503, never a hang (docs/spec.md#stores-away). The driver tries once more.
    socketTimeoutMS: callTimeoutMs,
    waitQueueTimeoutMS: callTimeoutMs,
    // MongoDB journals majority writes by default. A stricter setting of the URI stays.
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

/** The message says what to check. */
class MongoStartError extends Error {}

const AGAIN_MS = 1_000;

/** Waits for a MongoDB that is away, and says so once; any other fault rejects. */
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

/** Broken connections to others have the same codes as MongoDB's, but none of these names. */
const isAway = (error: unknown) =>
  error instanceof Error && /^(Mongo|PoolCleared)/.test(error.name) && isMongoAway(error);

export function watchMongo(mongo: Connection, { log, closer }: { log: Logger; closer: Closer }): void {
  const ping = () => mongo.db?.admin().ping() ?? Promise.reject(new Error('MongoDB is not connected'));
  closer.defer('watch of MongoDB', log.watchStore({ name: 'MongoDB', isFault: isAway, ping }));
}

export function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

/** Only a violated unique index: a bulk write may also have failed for another reason. */
export function isDuplicateKey(error: unknown): boolean {
  const isOne = (each: unknown) => codeOf(each) === DUPLICATE_KEY;
  const others = error instanceof mongoose.mongo.MongoBulkWriteError ? [error.writeErrors].flat() : [];
  return isOne(error) && others.every(isOne);
}
