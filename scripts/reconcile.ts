/**
 * `npm run reconcile [-- --check | --requeue-dead-letters]`: compares accounts, usage and Redis with the whole ledger
 * and repairs differences; with `--check`, repairs nothing. `--requeue-dead-letters` only puts settlement records that
 * could not be booked back into the outbox. Without REDIS_URL and MONGODB_URI, uses those of the running `npm start`.
 * Exit code 1 if something is still wrong at the end.
 */
import { parseArgs } from 'node:util';

import { environment, ConfigError, loadConfig } from '../shared/config/load-config.ts';
import { readArguments } from './harness/read-arguments.ts';
import { runReconcile } from './run-reconcile.ts';
import type { ReconcileTask } from './run-reconcile.ts';
import { startedStores } from './start/started-stores.ts';

const USAGE = 'npm run reconcile [-- --check | --requeue-dead-letters]';

const flag = { type: 'boolean', default: false } as const;

function readTask(args: string[]): ReconcileTask {
  const { values } = parseArgs({ args, options: { check: flag, 'requeue-dead-letters': flag } });
  if (values.check && values['requeue-dead-letters'])
    throw new Error('--check repairs nothing, so it requeues nothing.');
  if (values['requeue-dead-letters']) return 'requeue';
  return values.check ? 'check' : 'repair';
}

async function main(): Promise<number> {
  const read = readArguments(USAGE, process.argv.slice(2), readTask);
  if ('exitCode' in read) return read.exitCode;
  try {
    const env = { ...(await startedStores(environment)), ...environment };
    return await runReconcile(loadConfig(env, 'worker'), read.options);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    return 1;
  }
}

process.exitCode = await main();
