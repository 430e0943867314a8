import type { Config } from '../shared/config/load-config.ts';
import type { Logger } from '../shared/infra/logging/logger.ts';
import { createWorkerMetrics } from '../shared/infra/metrics/registry.ts';
import { createShardDirectory } from '../shared/infra/mongo/tenants/tenant-repository.ts';
import { createChatQueues } from '../shared/infra/queue/chat-queue.ts';
import { createBreakerStore, listenForBreakers } from '../shared/infra/redis/routing/breaker-store.ts';
import { createAccountStore } from '../shared/infra/redis/accounts/account-store.ts';
import { createAdmissionStore } from '../shared/infra/redis/requests/admission-store.ts';
import { createCancelChannel } from '../shared/infra/redis/requests/request-channels.ts';
import { createLeaderLease } from '../shared/infra/redis/leases/leader-lease.ts';
import { watchOutages } from '../shared/infra/redis/outages.ts';
import { createRecentWrites } from '../shared/infra/redis/recent-writes.ts';
import { createRequestStore } from '../shared/infra/redis/requests/request-store.ts';
import { openTracing } from '../shared/infra/tracing/open-tracing.ts';
import { systemClock } from '../shared/lifecycle/clock.ts';
import type { Closer } from '../shared/lifecycle/closer.ts';
import { createEventBus } from '../shared/lifecycle/event-bus.ts';
import { newId } from '../shared/lifecycle/ids.ts';
import { createReadiness } from '../shared/lifecycle/readiness.ts';
import type { Readiness } from '../shared/lifecycle/readiness.ts';
import { openConnections } from './open-connections.ts';
import { openDispatcher } from './batches/open-dispatcher.ts';
import { createBreakers } from './pipeline/breakers/breakers.ts';
import { REPLAYED_MS } from './pipeline/claim.ts';
import { withErasureGate } from './compliance/erasure-gate.ts';
import { startCompliance } from './compliance/start-compliance.ts';
import { createShardSupervisor } from './shard-supervisor.ts';
import { openPipeline } from './open-pipeline.ts';
import { openQueueRecorder } from './queue-recorder.ts';
import type { WorkerEvents } from './worker-events.ts';
import { logWorker, measureWorker } from './worker-metrics.ts';
import { traceQueue } from './worker-tracing.ts';
import { createOpenQueueWorkers } from './processors/open-queue-workers.ts';
import { createFinishJournal } from './settlement/finish-journal.ts';
import { openSettlement } from './settlement/open-settlement.ts';
import { createPublishNotices } from './webhooks/publish-notices.ts';
import { createNoticeStore } from '../shared/infra/redis/requests/notice-store.ts';
import { startWebhooks } from './webhooks/start-webhooks.ts';

export interface WorkerProcess {
  readiness: Readiness;
  metrics: { contentType: string; render(): Promise<string> };
}

export interface WorkerComposeOptions {
  /** Tests give each file its own. */
  namespace?: string;
  /** Silence between two pieces of text that counts as a hung provider. */
  betweenTokensMs?: number;
}

/**
 * A running request's lease: a worker that is silent for so long has died (docs/spec/contract.md section 7: 15 s in
 * all).
 */
const LEASE_MS = 10_000;
const BETWEEN_TOKENS_MS = 60_000;
/** For what has to be settled when the last request has ended. */
const SHARDS_CLOSING_MS = 5_000;

/** Opens everything a worker uses and starts it; each thing opened is closed by `closer`, in reverse. */
export async function composeWorker(
  config: Config,
  log: Logger,
  closer: Closer,
  options: WorkerComposeOptions = {},
): Promise<WorkerProcess> {
  const workerId = newId('wrk');
  const retentionMs = config.limits.streamRetentionSeconds * 1000;
  const requestTimeoutMs = config.limits.requestTimeoutSeconds * 1000;

  const tracing = await openTracing(config, 'worker', closer, log);
  const connections = await openConnections(config, options.namespace, log, closer);
  const { keyspace, redis, subscriber, memory, mongo, cipher, routing, http } = connections;
  const { pseudonyms, erasures, gate, ...stores } = withErasureGate(mongo, connections.pseudonymKey);

  const metrics = createWorkerMetrics({ unreadableProviders: () => routing.current().unreadable.size });
  const telemetry = createEventBus<WorkerEvents>((name, error) => {
    log.error(`A listener of ${name} failed.`, { error });
  });
  measureWorker(telemetry, metrics, systemClock);
  logWorker(telemetry, systemClock, log);
  const recorder = openQueueRecorder({ redis, keyspace, events: telemetry, clock: systemClock, closer, log });
  if (tracing !== undefined) traceQueue(telemetry, tracing, systemClock);
  const breakers = await createBreakers({
    store: createBreakerStore(redis, keyspace, telemetry),
    listen: (onChange, onMissed) => listenForBreakers(subscriber, keyspace, onChange, onMissed),
    workerId,
    events: telemetry,
    clock: systemClock,
    log,
  });
  closer.defer('breakers', () => breakers.stop());
  const leases = createLeaderLease(redis, keyspace, workerId);
  const { events, publishBooked, publishNotices } = await startWebhooks({
    config,
    mongo,
    redis,
    subscriber,
    keyspace,
    cipher,
    leases,
    gate,
    clock: systemClock,
    telemetry,
    recorder,
    closer,
    log,
  });
  const { hasReconnectedRecently, onReturn, stop } = watchOutages(redis);
  closer.defer('outage watch', stop);
  const requests = createRequestStore(redis, keyspace, {
    leaseMs: LEASE_MS,
    disconnectGraceMs: config.limits.disconnectGraceSeconds * 1000,
    hasReconnectedRecently,
  });
  const recentWrites = createRecentWrites({ hasReconnectedRecently, clock: systemClock, log });
  onReturn(() => void recentWrites.repeatAll());
  const journal = createFinishJournal({ requests, recentWrites, log });
  const admissions = createAdmissionStore(redis, keyspace, {
    queueLimit: config.queue.maxWaiting,
    requestTimeoutMs,
    retentionMs,
  });

  const { runPipeline, checkNow, hearCancel, checkAll } = openPipeline({
    redis,
    keyspace,
    http,
    routing,
    breakers,
    requests,
    journal,
    stores,
    events: telemetry,
    tracing,
    hasReconnectedRecently,
    moderation: config.moderation,
    betweenTokensMs: options.betweenTokensMs ?? BETWEEN_TOKENS_MS,
    retentionMs,
    clock: systemClock,
    log,
  });
  onReturn(checkAll);
  const cancelChannel = createCancelChannel(subscriber, keyspace, hearCancel);

  const accountStore = createAccountStore(redis, keyspace);
  const settlement = openSettlement({
    mongo,
    redis,
    keyspace,
    memory,
    routing,
    admissions,
    accountStore,
    requests,
    ledger: stores.ledger,
    leases,
    pseudonyms,
    runPipeline,
    publishBooked: async (records) => publishBooked(await gate.pseudonymize(records)),
    hasReconnectedRecently,
    requestTimeoutMs,
    retentionMs,
    telemetry,
    clock: systemClock,
    log,
  });
  const queues = createChatQueues(redis, keyspace, (error) => {
    log.warn('The queue reported an error.', { error });
  });
  closer.defer('queues', () => queues.close());
  startCompliance({
    mongo,
    redis,
    keyspace,
    queues,
    pseudonyms,
    erasures,
    recentWrites,
    retentionMs,
    events,
    leases,
    recorder,
    clock: systemClock,
    closer,
    log,
  });

  const supervisor = createShardSupervisor({
    ...settlement,
    directory: createShardDirectory(mongo, config.queue.shards),
    log,
    listen: (shard) => cancelChannel.subscribe(shard),
    openWorkers: createOpenQueueWorkers({
      config,
      redis,
      keyspace,
      queues,
      runPipeline,
      claims: { leaseMs: LEASE_MS, areAllowed: () => !hasReconnectedRecently(REPLAYED_MS) },
      workerId,
      onLockLost: checkNow,
      closer,
      log,
    }),
    dispatcher: openDispatcher({
      mongo,
      redis,
      keyspace,
      routing,
      admissions,
      isFull: memory.isFull,
      accountStore,
      recentWrites,
      leases,
      workerId,
      breakers,
      telemetry,
      events,
      hasReconnectedRecently,
      requestTimeoutMs,
      retentionMs,
      pseudonyms,
      clock: systemClock,
      log,
    }),
    publishNotices: createPublishNotices({
      notices: createNoticeStore(redis, keyspace),
      leases,
      publish: publishNotices,
    }),
  });
  await supervisor.start();
  closer.defer('supervisor', () => supervisor.close(), { limitMs: SHARDS_CLOSING_MS });
  closer.defer('running requests', () => supervisor.drain(), { limitMs: Infinity });

  const readiness = createReadiness({
    redis: () => redis.ping(),
    mongo: () => mongo.db?.admin().ping() ?? Promise.reject(new Error('not connected')),
    work: () => supervisor.assertWorking(),
  });
  return { readiness, metrics: metrics.page };
}
