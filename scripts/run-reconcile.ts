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

/** `requeue`: puts dead letters back into the outbox. */
export type ReconcileTask = 'check' | 'repair' | 'requeue';

/** Gives readable dead letters another try; unreadable ones stay. */
async function requeue(outbox: Outbox, shards: readonly number[]): Promise<number> {
  for (const shard of shards) {
    const { requeued, left } = await outbox.requeue(shard);
    console.log(`shard ${shard}: ${requeued} dead letters go back to the outbox, ${left} cannot be read and stay`);
  }
  return 0;
}

/** Checks every shard once and prints the findings; returns the exit code. Safe while the service is running. */
export async function runReconcile(config: Config, task: ReconcileTask): Promise<number> {
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
