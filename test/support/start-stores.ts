import { mkdtemp } from 'node:fs/promises';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';

import { openOwnMongo, openOwnRedis } from '../../scripts/harness/stores.ts';
import { rememberStores, rememberedStores } from './running-stores.ts';

/**
 * The tests' processes, which are started after the stores, give way to them: all wait for one MongoDB, whose stand-in has one
 * core. Beside seven of them and other work it did not answer within the 10 s that a call may take.
 */
const NICENESS = 5;

/** jest's globalSetup: one Redis and one MongoDB for all test files, unless TEST_REDIS_URL and TEST_MONGODB_URI are set. */
export default async function startStores(): Promise<void> {
  const running = rememberedStores();
  if (running !== undefined) {
    running.users += 1;
    return;
  }
  const stores = rememberStores(await makeDataDir());
  const log = (line: string) => {
    console.log(line);
  };
  if (isUnset('TEST_REDIS_URL')) {
    const redis = await openOwnRedis({ dataDir: stores.dataDir, log });
    stores.servers.push(redis);
    process.env['TEST_REDIS_URL'] = redis.url;
  }
  if (isUnset('TEST_MONGODB_URI')) {
    const mongo = await openOwnMongo({ dataDir: stores.dataDir, log });
    stores.servers.push(mongo);
    process.env['TEST_MONGODB_URI'] = mongo.url;
  }
  setPriority(NICENESS);
}

/** `npm test` hands in a folder that it removes even when jest is interrupted. */
async function makeDataDir(): Promise<string> {
  const given = process.env['PARLEY_TEST_DIR'];
  return given !== undefined && given !== '' ? given : mkdtemp(join(tmpdir(), 'parley-test-'));
}

function isUnset(name: string): boolean {
  return (process.env[name] ?? '') === '';
}
