import type { OnEarlyEnd } from '../../shared/contracts/settlement.ts';
import type { Pseudonyms } from '../../shared/domain/pseudonyms.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { createReconciliationRepository } from '../../shared/mongo/accounts/reconciliation-repository.ts';
import type { MongoConnection } from '../../shared/mongo/connection.ts';
import { createTenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import type { RoutingCache } from '../../shared/mongo/routing/routing-cache.ts';
import { createAccountAudit, createLastDrift } from '../../shared/redis/stores/account-store.ts';
import type { AccountStore } from '../../shared/redis/stores/account-store.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import type { MemoryWatch } from '../../shared/redis/memory-watch.ts';
import type { AdmissionStore } from '../../shared/requests/admission-store.ts';
import type { ChatQueues } from '../../shared/queue/queues.ts';
import { createInflight } from '../../shared/requests/overdue.ts';
import { createOutbox } from '../../shared/requests/outbox.ts';
import type { Outbox } from '../../shared/requests/outbox.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { WorkerEmitter } from '../pipeline/worker-events.ts';
import { openRecoverLost } from './recover-lost.ts';
import { createReconcileHourly, createReconciler } from './reconcile.ts';
import type { ReconcileHourly } from './reconcile.ts';
import { createSettler } from './settle.ts';
import type { SettleDeps, Settler } from './settle.ts';
import { createSweep } from './sweep.ts';
import type { Sweep, SweepDeps } from './sweep.ts';

/** Every part of settlement needs these. */
interface SharedDeps {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  accountStore: AccountStore;
  leases: LeaderLease;
  telemetry: WorkerEmitter;
  clock: Clock;
  log: Logger;
}

interface OpenSettlerDeps extends SharedDeps, Pick<SettleDeps, 'ledger' | 'publishBooked'> {}

interface OpenSweepDeps
  extends SharedDeps, Pick<SweepDeps, 'requests' | 'runPipeline' | 'retentionMs' | 'hasReconnectedRecently'> {
  admissions: AdmissionStore;
  queues: ChatQueues;
  routing: RoutingCache;
  memory: MemoryWatch;
  pseudonyms: Pseudonyms;
  requestTimeoutMs: number;
  onEarlyEnd: OnEarlyEnd;
}

export interface OpenSettlementDeps extends OpenSettlerDeps, OpenSweepDeps {}

function openSettler(deps: OpenSettlerDeps, outbox: Outbox): Settler {
  const { mongo, leases, ledger, publishBooked, accountStore, telemetry, clock, log } = deps;
  return createSettler({
    tenants: createTenantRepository(mongo),
    outbox,
    leases,
    ledger,
    accounts: accountStore,
    events: telemetry,
    publishBooked,
    clock,
    log,
  });
}

function openSweep(deps: OpenSweepDeps): Sweep {
  const { redis, keyspace, queues, memory, admissions, requests, leases, runPipeline } = deps;
  const { retentionMs, hasReconnectedRecently, log } = deps;
  return createSweep({
    admissions,
    requests,
    leases,
    runPipeline,
    onEarlyEnd: deps.onEarlyEnd,
    recoverLost: openRecoverLost({ ...deps, store: admissions, isFull: memory.isFull }),
    inflight: createInflight(redis, keyspace, queues),
    isExhausted: memory.isExhausted,
    retentionMs,
    hasReconnectedRecently,
    log,
  });
}

function openReconcile(deps: SharedDeps, outbox: Outbox): ReconcileHourly {
  const { mongo, redis, keyspace, accountStore, leases, telemetry, clock, log } = deps;
  const reconciler = createReconciler({
    books: createReconciliationRepository(mongo),
    audit: createAccountAudit(redis, keyspace),
    accounts: accountStore,
    clock,
    log,
  });
  const drift = createLastDrift(redis, keyspace);
  return createReconcileHourly({ reconciler, leases, outbox, drift, events: telemetry, log });
}

/** Opens the parts that book requests, end what nobody else ends, and compare the books. */
export function openSettlement(deps: OpenSettlementDeps) {
  const { redis, keyspace, telemetry } = deps;
  const outbox = createOutbox(redis, keyspace);
  return {
    settler: openSettler(deps, outbox),
    sweep: openSweep(deps),
    reconcile: openReconcile(deps, outbox),
    /** Reports how far the settlement of a shard is behind. */
    async measureOutbox(shard: number): Promise<void> {
      telemetry.emit('settlement.waiting', shard, await outbox.backlog(shard));
    },
  };
}
