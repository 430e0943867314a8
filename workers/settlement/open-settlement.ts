import type { Pseudonyms } from '../../shared/domain/compliance/pseudonyms.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { createReconciliationRepository } from '../../shared/infra/mongo/accounts/reconciliation-repository.ts';
import type { SettlementRepository } from '../../shared/infra/mongo/accounts/settlement-repository.ts';
import type { MongoConnection } from '../../shared/infra/mongo/connection.ts';
import type { RoutingCache } from '../../shared/infra/mongo/routing/routing-cache.ts';
import { createAccountAudit } from '../../shared/infra/redis/accounts/account-audit.ts';
import type { AccountStore } from '../../shared/infra/redis/accounts/account-store.ts';
import { createLastDrift } from '../../shared/infra/redis/accounts/last-drift.ts';
import type { RedisClient } from '../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../shared/infra/redis/keyspace.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { MemoryWatch } from '../../shared/infra/redis/memory-watch.ts';
import type { AdmissionStore } from '../../shared/infra/redis/requests/admission-store.ts';
import { createInflight } from '../../shared/infra/redis/requests/inflight.ts';
import { createOutbox } from '../../shared/infra/redis/requests/outbox.ts';
import type { RequestStore } from '../../shared/infra/redis/requests/request-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { RunPipeline } from '../pipeline/run-pipeline.ts';
import type { WorkerEmitter } from '../worker-events.ts';
import { openRecoverLost } from './recover-lost.ts';
import { createReconcileHourly, createReconciler } from './reconcile.ts';
import type { ReconcileHourly } from './reconcile.ts';
import { createSettler } from './settle.ts';
import type { SettleDeps, Settler } from './settle.ts';
import { createSweep } from './sweep.ts';
import type { Sweep } from './sweep.ts';

export interface OpenSettlementDeps {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  memory: MemoryWatch;
  routing: RoutingCache;
  admissions: AdmissionStore;
  accountStore: AccountStore;
  requests: RequestStore;
  ledger: SettlementRepository;
  leases: LeaderLease;
  pseudonyms: Pseudonyms;
  runPipeline: RunPipeline;
  publishBooked: SettleDeps['publishBooked'];
  hasReconnectedRecently: () => boolean;
  requestTimeoutMs: number;
  retentionMs: number;
  telemetry: WorkerEmitter;
  clock: Clock;
  log: Logger;
}

/** What a worker does for the books and the loose ends of each shard. */
export interface Settlement {
  settler: Settler;
  sweep: Sweep;
  reconcile: ReconcileHourly;
  /** Reports how far the settlement of a shard is behind. */
  measureOutbox: (shard: number) => Promise<void>;
}

/** Puts together what books requests, ends what nobody else ends, and compares the books. */
export function openSettlement(deps: OpenSettlementDeps): Settlement {
  const { mongo, redis, keyspace, memory, routing, admissions, accountStore, requests, leases, telemetry } = deps;
  const { pseudonyms, requestTimeoutMs, retentionMs, hasReconnectedRecently, clock, log } = deps;
  const outbox = createOutbox(redis, keyspace);
  const reconciler = createReconciler({
    books: createReconciliationRepository(mongo),
    audit: createAccountAudit(redis, keyspace),
    accounts: accountStore,
    clock,
    log,
  });
  return {
    settler: createSettler({
      outbox,
      leases,
      ledger: deps.ledger,
      accounts: accountStore,
      events: telemetry,
      publishBooked: deps.publishBooked,
      clock,
      log,
    }),
    sweep: createSweep({
      admissions,
      requests,
      leases,
      runPipeline: deps.runPipeline,
      recoverLost: openRecoverLost({
        mongo,
        redis,
        keyspace,
        store: admissions,
        accountStore,
        routing,
        pseudonyms,
        requestTimeoutMs,
        isFull: memory.isFull,
        clock,
        log,
      }),
      inflight: createInflight(redis, keyspace),
      isExhausted: memory.isExhausted,
      retentionMs,
      hasReconnectedRecently,
      log,
    }),
    reconcile: createReconcileHourly({
      reconciler,
      leases,
      outbox,
      drift: createLastDrift(redis, keyspace),
      events: telemetry,
      log,
    }),
    async measureOutbox(shard) {
      telemetry.emit('settlement.waiting', shard, await outbox.backlog(shard));
    },
  };
}
