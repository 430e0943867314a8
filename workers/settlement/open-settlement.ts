import { createReconciliationRepository } from '../../shared/mongo/accounts/reconciliation-repository.ts';
import { createTenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import { createAccountAudit, createLastDrift } from '../../shared/redis/stores/account-store.ts';
import { createInflight } from '../../shared/requests/overdue.ts';
import { createOutbox } from '../../shared/requests/outbox.ts';
import type { WorkerParts } from '../pipeline/worker-parts.ts';
import { openRecoverLost } from './recover-lost.ts';
import { createReconcileHourly, createReconciler } from './reconcile.ts';
import { createSettler } from './settle.ts';
import type { SettleDeps } from './settle.ts';
import { createSweep } from './sweep.ts';
import type { SweepDeps } from './sweep.ts';

/** Opens the parts that book requests, end what nobody else ends, and compare the books. */
export function openSettlement(
  worker: WorkerParts,
  runPipeline: SweepDeps['runPipeline'],
  publishBooked: SettleDeps['publishBooked'],
) {
  const { mongo, redis, keyspace, queues, memory, accountStore: accounts, telemetry: events } = worker;
  const outbox = createOutbox(redis, keyspace);
  const parts = { ...worker, accounts, events, outbox };
  return {
    settler: createSettler({ ...parts, tenants: createTenantRepository(mongo), publishBooked }),
    sweep: createSweep({
      ...parts,
      runPipeline,
      recoverLost: openRecoverLost(worker),
      inflight: createInflight(redis, keyspace, queues),
      isExhausted: memory.isExhausted,
    }),
    reconcile: createReconcileHourly({
      ...parts,
      reconciler: createReconciler({
        ...parts,
        books: createReconciliationRepository(mongo),
        audit: createAccountAudit(redis, keyspace),
      }),
      drift: createLastDrift(redis, keyspace),
    }),
    async measureOutbox(shard: number): Promise<void> {
      events.emit('settlement.waiting', shard, await outbox.backlog(shard));
    },
  };
}
