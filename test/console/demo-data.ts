import { playWeek } from '../../scripts/start/demo-week.ts';
import { systemClock } from '../../shared/lifecycle/clock.ts';
import { createReconciliationRepository } from '../../shared/mongo/accounts/reconciliation-repository.ts';
import { createAccountAudit, createAccountStore } from '../../shared/redis/stores/account-store.ts';
import { createReconciler } from '../../workers/settlement/reconcile.ts';
import { createRecordingLog } from '../support/recording-log.ts';
import type { TestService, TestTenant } from '../support/service.ts';

/** Plays what `npm start -- --demo` plays, for a tenant whose ledger is empty. */
export function playDemo({ admin, url, mongo, redis, keyspace }: TestService, tenant: TestTenant): Promise<void> {
  const call = async (method: 'get' | 'post' | 'put', path: string, body?: object) => {
    const answer = await admin(method, path.replace('/admin/v1', ''), body);
    if (answer.status >= 300) throw new Error(answer.text);
    return answer.body as Record<string, unknown>;
  };
  return playWeek({
    admin: {
      find: (path) => call('get', path),
      send: (method, path, body) => call(method === 'POST' ? 'post' : 'put', path, body as object),
    },
    baseUrl: url,
    mongo,
    accounts: createAccountStore(redis, keyspace),
    tenant: { tenantId: tenant.tenantId, liveKey: { id: tenant.keyId, value: tenant.key } },
  });
}

/** Reconciles every tenant, as `npm run reconcile -- --check` does. */
export function reconcileAll({ mongo, redis, keyspace }: TestService) {
  const reconciler = createReconciler({
    books: createReconciliationRepository(mongo),
    audit: createAccountAudit(redis, keyspace),
    accounts: createAccountStore(redis, keyspace),
    clock: systemClock,
    log: createRecordingLog(),
  });
  return reconciler.reconcileShard(0, { onDrift: 'report', full: true });
}
