/**
 * `npm run reconcile [-- --check | --requeue-dead-letters]`: compares accounts, usage and Redis with the whole ledger
 * and repairs differences; with `--check`, repairs nothing. `--requeue-dead-letters` only puts settlement records that
 * could not be booked back into the outbox. Without REDIS_URL and MONGODB_URI, uses those of the running `npm start`.
 * Exit code 1 if something is still wrong at the end.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import type { Config } from '../shared/config/settings.ts';
import { createLogger } from '../shared/logging/logger.ts';
import { connectMongo } from '../shared/mongo/connection.ts';
import { createReconciliationRepository } from '../shared/mongo/accounts/reconciliation-repository.ts';
import { createShardDirectory } from '../shared/mongo/tenants/tenant-repository.ts';
import { createAccountAudit, createLastDrift, createAccountStore } from '../shared/redis/stores/account-store.ts';
import { connectRedis, createRedis } from '../shared/redis/connection.ts';
import { createKeyspace } from '../shared/redis/keyspace.ts';
import { createOutbox } from '../shared/requests/outbox.ts';
import type { Outbox } from '../shared/requests/outbox.ts';
import { systemClock } from '../shared/lifecycle/clock.ts';
import { createCloser } from '../shared/lifecycle/closer.ts';
import { createReconciler, isDrifting } from '../workers/settlement/reconcile.ts';
import { environment, ConfigError, loadConfig } from '../shared/config/load-config.ts';
import { readArguments } from './harness/read-arguments.ts';
import type { Environment } from './embedded/find-program.ts';
import { loadState } from './start/state.ts';

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

/** The stores of this folder's `npm start`, as settings; empty if it was never started. */
async function startedStores(env: Environment): Promise<Environment> {
  const file = join(env['DATA_DIR'] ?? '.data', 'start.json');
  if (!existsSync(file)) return {};
  const { stores, credentialsKey } = await loadState(file);
  return { ...stores, CREDENTIALS_KEY: credentialsKey };
}

/** `requeue`: puts dead letters back into the outbox. */
type ReconcileTask = 'check' | 'repair' | 'requeue';

/** Gives readable dead letters another try; unreadable ones stay. */
async function requeue(outbox: Outbox, shards: readonly number[]): Promise<number> {
  for (const shard of shards) {
    const { requeued, left } = await outbox.requeue(shard);
    console.log(`shard ${shard}: ${requeued} dead letters go back to the outbox, ${left} cannot be read and stay`);
  }
  return 0;
}

/** Checks every shard once and prints the findings; returns the exit code. Safe while the service is running. */
async function runReconcile(config: Config, task: ReconcileTask): Promise<number> {
  const closer = createCloser((name, error) => {
    console.error(`Closing ${name} failed: ${String(error)}`);
  });
  try {
    const redis = createRedis(config.redis.url, 'producer');
    closer.defer('redis', () => {
      redis.disconnect();
    });
    redis.on('error', () => undefined);
    await connectRedis(redis);
    const mongo = await connectMongo(config.mongodb.uri);
    closer.defer('mongo', () => mongo.close());
    const keyspace = createKeyspace();
    const shards = await createShardDirectory(mongo, config.queue.shards).list();
    if (task === 'requeue') return await requeue(createOutbox(redis, keyspace), shards);
    const reconciler = createReconciler({
      books: createReconciliationRepository(mongo),
      audit: createAccountAudit(redis, keyspace),
      accounts: createAccountStore(redis, keyspace),
      clock: systemClock,
      log: createLogger('reconcile', config.process.logLevel),
    });
    const lastDrift = createLastDrift(redis, keyspace);
    let isRight = true;
    for (const shard of shards) {
      const { tenants, failed, found, left } = await reconciler.reconcileShard(shard, {
        onDrift: task === 'repair' ? 'repair' : 'report',
        full: true,
      });
      // Workers export this value as `parley_ledger_drift`.
      if (task === 'repair') await lastDrift.keep(shard, { ...left });
      const verdict = isDrifting(found) ? (isDrifting(left) ? 'drift is left' : 'drift was repaired') : 'no drift';
      console.log(`shard ${shard}: ${tenants} tenants, ${verdict}`);
      if (isDrifting(found)) console.table({ found, left });
      if (failed > 0) console.error(`shard ${shard}: ${failed} tenants could not be reconciled`);
      isRight &&= !isDrifting(left) && failed === 0;
    }
    return isRight ? 0 : 1;
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  } finally {
    await closer.close();
  }
}

process.exitCode = await main();
