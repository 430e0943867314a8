/**
 * `npm run reconcile [-- --check]`: holds accounts, usage and Redis against the ledger and repairs what differs; with
 * `--check` nothing is changed. Without REDIS_URL and MONGODB_URI it takes those of the running `npm start`. Exit code
 * 1 when something is wrong in the end.
 */
import { parseArgs } from 'node:util';

import { environment } from '../shared/config/environment.ts';
import { ConfigError, loadConfig } from '../shared/config/load-config.ts';
import { runReconcile } from './run-reconcile.ts';
import { startedStores } from './start/started-stores.ts';

const USAGE = 'npm run reconcile [-- --check]';

async function main(): Promise<number> {
  let check: boolean;
  try {
    check = parseArgs({ options: { check: { type: 'boolean', default: false } } }).values.check;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\nUsage: ${USAGE}`);
    return 2;
  }
  try {
    const env = { ...(await startedStores(environment)), ...environment };
    return await runReconcile(loadConfig(env, 'worker'), { repair: !check });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    return 1;
  }
}

process.exitCode = await main();
