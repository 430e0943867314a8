import type { ServerProcess } from '../../../scripts/embedded/server-process.ts';
import { openOwnMongo, openOwnRedis, ownDatabase } from '../../../scripts/harness/stores.ts';
import type { ProcessExit } from '../checker/evidence.ts';
import { toVictim } from './victim.ts';
import type { Victim } from './victim.ts';

/** A store that can be killed and brought back at the same address with the same data. */
export interface Store {
  url: string;
  /** The process that runs now. */
  current(): Victim;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface VictimStoreOptions {
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

export function openRedisVictim({ exits, ...options }: VictimStoreOptions): Promise<Store> {
  return openStore('redis', exits, (port) => openOwnRedis({ ...options, ...(port === undefined ? {} : { port }) }));
}

export function openMongoVictim({ exits, ...options }: VictimStoreOptions): Promise<Store> {
  return openStore('mongodb', exits, (port) => openOwnMongo({ ...options, ...(port === undefined ? {} : { port }) }));
}

/** A database of its own in a server that somebody else runs; the experiment must not touch the server. */
export function openGivenMongo(given: string): Store {
  const { uri, drop } = ownDatabase(given, 'fault');
  const refuse = () => {
    throw new Error('This experiment needs a MongoDB of its own.');
  };
  return { url: uri, current: refuse, restart: refuse, stop: drop };
}
