import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import { startMongo } from '../embedded/mongo.ts';
import { startRedis } from '../embedded/redis.ts';
import type { Log } from '../embedded/run-step.ts';
import { connectMongo } from '../../shared/infra/mongo/connection.ts';
import type { Supervisor } from '../start/supervisor.ts';
import { withDatabase } from './mongo-database.ts';
import { ROOT } from './node-program.ts';

/** Kept between runs and shared with the tests and `npm start`: SecantusDB is installed once. */
const CACHE_DIR = join(ROOT, '.data', 'cache');

export interface StoreOptions {
  supervisor: Supervisor;
  dataDir: string;
  log: Log;
}

export interface MongoInUse {
  uri: string;
  /** Undefined where somebody else runs the server. */
  pid: number | undefined;
  /** Which server it is, for a report. */
  label: string;
}

/** A Redis of its own, as `npm start` runs it: AOF `everysec`, `noeviction`. */
export async function openRedis({ supervisor, dataDir, log }: StoreOptions): Promise<{ url: string; pid: number }> {
  const redis = await startRedis({ dataDir, log, signal: supervisor.signal });
  supervisor.adopt('Redis', redis);
  return { url: redis.url, pid: redis.pid };
}

/** A database of its own in `MONGODB_URI` where that is set, else a server of its own, the faster stand-in first. */
export async function openMongo({ supervisor, dataDir, log }: StoreOptions): Promise<MongoInUse> {
  const given = process.env['MONGODB_URI'] ?? '';
  if (given !== '') return useGiven(given, supervisor);
  const { signal } = supervisor;
  const mongo = await startMongo({ dataDir, cacheDir: CACHE_DIR, prefer: 'fast', log, signal });
  supervisor.adopt('MongoDB', mongo);
  return { uri: mongo.url, pid: mongo.pid, label: mongo.kind };
}

function useGiven(given: string, supervisor: Supervisor): MongoInUse {
  const database = `parley_${randomBytes(6).toString('hex')}`;
  const uri = withDatabase(given, database);
  supervisor.defer(`the database ${database}`, async () => {
    const connection = await connectMongo(uri);
    await connection.dropDatabase();
    await connection.close();
  });
  return { uri, pid: undefined, label: `the server of MONGODB_URI, database ${database}` };
}
