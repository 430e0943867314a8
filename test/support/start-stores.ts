import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startMongo } from '../../scripts/embedded/mongo.ts';
import { startRedis } from '../../scripts/embedded/redis.ts';
import { rememberStores, rememberedStores } from './running-stores.ts';

/** Kept between runs and shared with `npm start` in its default DATA_DIR: SecantusDB is installed once. */
const CACHE_DIR = join(import.meta.dirname, '..', '..', '.data', 'cache');

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
    const redis = await startRedis({ dataDir: stores.dataDir, log });
    stores.servers.push(redis);
    process.env['TEST_REDIS_URL'] = redis.url;
  }
  if (isUnset('TEST_MONGODB_URI')) {
    const mongo = await startMongo({ dataDir: stores.dataDir, cacheDir: CACHE_DIR, prefer: 'fast', log });
    stores.servers.push(mongo);
    process.env['TEST_MONGODB_URI'] = mongo.url;
  }
}

/** `npm test` hands in a folder that it removes even when jest is interrupted. */
async function makeDataDir(): Promise<string> {
  const given = process.env['PARLEY_TEST_DIR'];
  return given !== undefined && given !== '' ? given : mkdtemp(join(tmpdir(), 'parley-test-'));
}

function isUnset(name: string): boolean {
  return (process.env[name] ?? '') === '';
}
