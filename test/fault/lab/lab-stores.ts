import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import { startMongo } from '../../../scripts/embedded/mongo.ts';
import { startRedis } from '../../../scripts/embedded/redis.ts';
import type { ServerProcess } from '../../../scripts/embedded/server-process.ts';
import { connectMongo } from '../../../shared/infra/mongo/connection.ts';
import { withDatabase } from '../../../scripts/service/mongo-database.ts';
import { ROOT } from '../../../scripts/service/node-program.ts';
import type { ProcessExit } from '../checker/evidence.ts';
import { toVictim } from './program.ts';
import type { Victim } from './program.ts';

/** Kept between runs and shared with the tests and `npm start`: SecantusDB is installed once. */
const CACHE_DIR = join(ROOT, '.data', 'cache');

/** A store that can be killed and brought back at the same address with the same data. */
export interface Store {
  url: string;
  /** The process that runs now. */
  current(): Victim;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface StoreOptions {
  dataDir: string;
  signal: AbortSignal;
  exits: ProcessExit[];
}

type Started = ServerProcess & { url: string };

async function openStore(
  name: string,
  exits: ProcessExit[],
  start: (port?: number) => Promise<Started>,
): Promise<Store> {
  const first = await start();
  const { url } = first;
  const port = Number(new URL(url).port);
  let starts = 1;
  let victim = toVictim(name, first, exits);
  return {
    url,
    current: () => victim,
    async restart() {
      starts += 1;
      victim = toVictim(`${name}-${starts}`, await start(port), exits);
    },
    // Its data is thrown away.
    stop: () => victim.kill(),
  };
}

/** A Redis of its own, as `npm start` runs it: AOF `everysec`, `noeviction`. */
export function openRedis({ dataDir, signal, exits }: StoreOptions): Promise<Store> {
  const log = () => undefined;
  return openStore('redis', exits, (port) =>
    startRedis({ dataDir, log, signal, ...(port === undefined ? {} : { port }) }),
  );
}

/** A MongoDB of its own, the faster stand-in first. */
export function openMongo({ dataDir, signal, exits }: StoreOptions): Promise<Store> {
  const log = () => undefined;
  const options = { dataDir, cacheDir: CACHE_DIR, prefer: 'fast', log, signal } as const;
  return openStore('mongodb', exits, (port) => startMongo({ ...options, ...(port === undefined ? {} : { port }) }));
}

/** A database of its own in a server that somebody else runs; the experiment must not touch the server. */
export function openGivenMongo(uri: string): Store {
  const url = withDatabase(uri, `fault_${randomBytes(6).toString('hex')}`);
  const refuse = () => {
    throw new Error('This experiment needs a MongoDB of its own.');
  };
  return {
    url,
    current: refuse,
    restart: refuse,
    async stop() {
      const connection = await connectMongo(url);
      await connection.dropDatabase();
      await connection.close();
    },
  };
}
