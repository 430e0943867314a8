import mongoose from 'mongoose';
import type { Connection } from 'mongoose';

/** What every repository is made of. */
export type MongoConnection = Connection;

const SERVER_SELECTION_TIMEOUT_MS = 1_500;
const CONNECT_TIMEOUT_MS = 5_000;
/** What mongoose itself throws while it is not connected. */
/**
 * Whether the URI leaves a write with less than a majority. Such a write is rolled back when another server becomes the
 * primary, and whoever wrote it has gone on: settlement deletes what it has booked from Redis.
 */
function allowsMinority(uri: string): boolean {
  return /^[01]?$/.test(/[?&]w=([^&]*)/.exec(uri)?.[1] ?? '');
}

const AWAY_NAMES: ReadonlySet<string> = new Set(['MongooseError', 'MongooseServerSelectionError']);

/**
 * A connection of its own, no global state; each try of a call is limited to `callTimeoutMs`.
 * Rejects with one sentence when MongoDB cannot be reached. */
export async function connectMongo(uri: string, { callTimeoutMs = 10_000 } = {}): Promise<Connection> {
  const connection = mongoose.createConnection(uri, {
    serverSelectionTimeoutMS: SERVER_SELECTION_TIMEOUT_MS,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    // A database that is away is a 503, never a hang (docs/spec/contract.md section 2). The driver tries once more.
    socketTimeoutMS: callTimeoutMs,
    waitQueueTimeoutMS: callTimeoutMs,
    // MongoDB journals what a majority has, by default. A stricter setting of the URI stays.
    ...(allowsMinority(uri) ? { w: 'majority' } : {}),
    readPreference: 'primary',
    autoIndex: false,
    autoCreate: false,
    bufferCommands: false,
  });
  // A filter on a field that no schema has is a bug, not "match everything" (docs/architecture/facts.md section 10).
  connection.set('strictQuery', 'throw');
  try {
    return await connection.asPromise();
  } catch (cause) {
    await connection.close().catch(() => undefined);
    throw new Error('MongoDB does not answer; check MONGODB_URI and that the server runs and accepts connections.', {
      cause,
    });
  }
}

/** MongoDB's code for a violated unique index. */
export function isDuplicateKey(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 11_000;
}

/**
 * Whether a call failed because MongoDB is away, busy or changing its primary, so that the same call may succeed later.
 * The driver marks what may be tried again with labels.
 */
export function isMongoAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof mongoose.mongo.MongoError && error.errorLabels.length > 0) return true;
  // A bulk write wraps what cut its connection; what the server refused has an entry for each document.
  if (error instanceof mongoose.mongo.MongoBulkWriteError) return [error.writeErrors].flat().length === 0;
  if (error instanceof mongoose.mongo.MongoServerError) return false;
  return error instanceof mongoose.mongo.MongoError || AWAY_NAMES.has(error.name);
}
