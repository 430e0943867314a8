import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import { connectMongo } from '../../shared/mongo/connection.ts';
import { startMongo } from '../embedded/mongo.ts';
import type { EmbeddedMongo } from '../embedded/mongo.ts';
import { startRedis } from '../embedded/redis.ts';
import type { EmbeddedRedis } from '../embedded/redis.ts';
import type { Log } from '../embedded/run-step.ts';
import { ROOT } from './program.ts';
import type { Supervisor } from './supervisor.ts';

/** Kept between runs and shared with `npm start` in its default DATA_DIR, so that SecantusDB is installed only once. */
const CACHE_DIR = join(ROOT, '.data', 'cache');

/** For a store whose data is thrown away with its folder. */
export interface StoreOptions {
  dataDir: string;
  log?: Log;
  signal?: AbortSignal;
  /** Default: a free port. */
  port?: number;
}

/** Starts a separate Redis, configured as by `npm start`: AOF `everysec`, `noeviction`. */
export function openOwnRedis({ log = () => undefined, ...options }: StoreOptions): Promise<EmbeddedRedis> {
  return startRedis({ ...options, log });
}

/** Starts a separate MongoDB, preferably the faster stand-in. */
export function openOwnMongo({ log = () => undefined, ...options }: StoreOptions): Promise<EmbeddedMongo> {
  return startMongo({ ...options, log, cacheDir: CACHE_DIR, prefer: 'fast' });
}

export interface SupervisedStore {
  supervisor: Supervisor;
  dataDir: string;
  log: Log;
}

export interface MongoInUse {
  uri: string;
  /** Undefined if somebody else runs the server. */
  pid: number | undefined;
}

/** Like openOwnRedis; `supervisor` stops it. */
export async function superviseRedis({ supervisor, ...options }: SupervisedStore): Promise<EmbeddedRedis> {
  return supervisor.adopt('Redis', await openOwnRedis({ ...options, signal: supervisor.signal }));
}

/** A separate database in `MONGODB_URI` if that is set, or else like openOwnMongo; `supervisor` stops it. */
export async function superviseMongo({ supervisor, ...options }: SupervisedStore): Promise<MongoInUse> {
  const given = process.env['MONGODB_URI'] ?? '';
  if (given !== '') return useGiven(given, supervisor);
  const mongo = supervisor.adopt('MongoDB', await openOwnMongo({ ...options, signal: supervisor.signal }));
  return { uri: mongo.url, pid: mongo.pid };
}

function useGiven(given: string, supervisor: Supervisor): MongoInUse {
  const { uri, database, drop } = ownDatabase(given, 'parley');
  supervisor.defer(`the database ${database}`, drop);
  return { uri, pid: undefined };
}

/** A separate database in a server that somebody else runs. */
export function ownDatabase(given: string, prefix: string) {
  const database = `${prefix}_${randomBytes(6).toString('hex')}`;
  const uri = withDatabase(given, database);
  return {
    uri,
    database,
    async drop(): Promise<void> {
      const connection = await connectMongo(uri);
      await connection.dropDatabase();
      await connection.close();
    },
  };
}

/**
 * The same MongoDB with another database, because a benchmark must not write into one that is in use. Parsed by hand,
 * because a URI with several hosts is not a URL.
 */
export function withDatabase(uri: string, database: string): string {
  const match = /^(mongodb(?:\+srv)?:\/\/)([^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(uri);
  if (match === null) throw new Error('MONGODB_URI must be a URI as in mongodb://host:27017/database.');
  const [, scheme = '', hosts = '', from = '', query = ''] = match;
  const options = new URLSearchParams(query);
  // Logins are looked up in the path's database, unless the URI names another one.
  if (hosts.includes('@') && !options.has('authSource') && scheme === 'mongodb://') {
    options.set('authSource', from === '' ? 'admin' : from);
  }
  const rest = options.size === 0 ? '' : `?${options.toString()}`;
  return `${scheme}${hosts}/${database}${rest}`;
}
