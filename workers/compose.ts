import type { OnEarlyEnd } from '../shared/contracts/settlement.ts';
import type { Config } from '../shared/config/settings.ts';
import { withErasureGate } from '../shared/erasure-gate.ts';
import type { ErasureGatedStores } from '../shared/erasure-gate.ts';
import { createHttpClient } from './providers/http-client.ts';
import type { HttpClient } from './providers/http-client.ts';
import type { Closer } from '../shared/lifecycle/closer.ts';
import { createEventBus } from '../shared/lifecycle/event-bus.ts';
import { newId } from '../shared/lifecycle/ids.ts';
import { createReadiness } from '../shared/lifecycle/readiness.ts';
import type { Logger } from '../shared/logging/logger.ts';
import { createWorkerMetrics } from '../shared/metrics/worker-series.ts';
import type { WorkerGauges } from '../shared/metrics/worker-series.ts';
import { createAccountRepository } from '../shared/mongo/accounts/account-repository.ts';
import { createRoutingRepository } from '../shared/mongo/routing/routing-repository.ts';
import { createShardDirectory } from '../shared/mongo/tenants/tenant-repository.ts';
import { createChatQueues } from '../shared/queue/queues.ts';
import type { ChatQueues } from '../shared/queue/queues.ts';
import { openProcessParts } from '../shared/process-parts.ts';
import type { ProcessParts } from '../shared/process-parts.ts';
import { subscribe } from '../shared/redis/connection.ts';
import { createAccountStore } from '../shared/redis/stores/account-store.ts';
import { createBreakerStore, listenForBreakers } from '../shared/redis/stores/breaker-store.ts';
import { createCapacityStore } from '../shared/redis/stores/capacity-store.ts';
import { createProcessRegistry, register } from '../shared/redis/stores/process-registry.ts';
import { serveProviderTests } from '../shared/redis/stores/provider-tests.ts';
import { createLeaderLease } from '../shared/redis/stores/leader-lease.ts';
import { createAdmissionStore } from '../shared/requests/admission-store.ts';
import { createRequestStore } from '../shared/requests/delivery-store.ts';
import { createNoticeStore } from '../shared/requests/outbox.ts';
import { createRequestEraser } from '../shared/requests/request-eraser.ts';
import { openTracing } from '../shared/tracing/open-tracing.ts';
import { openDispatcher } from './batches/dispatcher.ts';
import { createEraseDeleted } from './compliance/erase-requests.ts';
import { startCompliance } from './compliance/start-compliance.ts';
import { createAdapters, openPipeline } from './open-pipeline.ts';
import { createShardSupervisor } from './shard-supervisor.ts';
import type { ShardSupervisor, ShardSupervisorDeps } from './shard-supervisor.ts';
import { openQueueRecorder } from './observers/queue-recorder.ts';
import { logWorker, measureWorker, recordRequestEnds } from './observers/worker-metrics.ts';
import { traceQueue } from './observers/worker-tracing.ts';
import { openRequestRecorder } from '../shared/mongo/requests/request-log.ts';
import { createBreakers } from './pipeline/breakers.ts';
import type { Breakers } from './pipeline/breakers.ts';
import { createCapacities } from './pipeline/capacities.ts';
import { REPLAYED_MS } from './pipeline/claim.ts';
import type { WorkerEventBus, WorkerEvents } from './pipeline/worker-events.ts';
import type { WorkerParts } from './pipeline/worker-parts.ts';
import { createTestProvider } from './providers/test-provider.ts';
import { createOpenQueueWorkers } from './queue/open-queue-workers.ts';
import { watchMongoPath } from './queue/worker-health.ts';
import { createLoadBalance } from './settlement/settle.ts';
import { openSettlement } from './settlement/open-settlement.ts';
import { createPublishNotices } from './webhooks/publish-events.ts';
import { startWebhooks } from './webhooks/start-webhooks.ts';

/** The client for providers; an administrator's tests of providers are answered with it, too. */
function openHttp({ redis, subscriber, keyspace, mongo, cipher, closer, log }: ProcessParts): HttpClient {
  const http = createHttpClient();
  closer.defer('http', () => http.close());
  const repository = createRoutingRepository(mongo, cipher);
  const testProvider = createTestProvider({ repository, adapters: createAdapters(http) });
  serveProviderTests({ redis, subscriber, keyspace }, testProvider, (error) => {
    log.warn('A provider could not be tested.', { error });
  }).catch(() => undefined);
  return http;
}

export interface WorkerComposeOptions {
  /** Tests give each file its own. */
  namespace?: string;
  /** Silence behind the first text after which a provider counts as hung. */
  silenceMs?: number;
}

/** A worker whose lease is silent for so long has died (docs/spec.md#workers: 15 s in all). */
const LEASE_MS = 10_000;
const BETWEEN_TOKENS_MS = 60_000;
/** Time to settle what the last request has left. */
const SHARDS_CLOSING_MS = 5_000;

/** Opens what listens to the work without being waited for: metrics, log lines, the board's charts, traces. */
function openListeners(process: ProcessParts, gauges: Omit<WorkerGauges, 'unreadableProviders'>) {
  const { config, mongo, routing, tracing, clock, log } = process;
  const metrics = createWorkerMetrics({ ...gauges, unreadableProviders: () => routing.current().unreadable.size });
  const telemetry = createEventBus<WorkerEvents>((name, error) => {
    log.error(`A listener of ${name} failed.`, { error });
  });
  measureWorker(telemetry, metrics, clock);
  logWorker(telemetry, clock, log);
  const ends = openRequestRecorder(mongo, { ...process, keptDays: config.limits.requestLogDays });
  recordRequestEnds(telemetry, ends, clock);
  const recorder = openQueueRecorder({ ...process, events: telemetry });
  if (tracing !== undefined) traceQueue(telemetry, tracing, clock);
  return { metrics, telemetry, recorder };
}

async function openBreakers(process: ProcessParts, telemetry: WorkerEventBus, workerId: string) {
  const { redis, subscriber, keyspace, closer } = process;
  const breakers = await createBreakers({
    ...process,
    store: createBreakerStore(redis, keyspace, telemetry),
    listen: (onChange, onMissed) => listenForBreakers(subscriber, keyspace, onChange, onMissed),
    workerId,
    events: telemetry,
  });
  closer.defer('breakers', () => breakers.stop());
  return breakers;
}

/** Opens the requests in Redis, and what is written there again whenever it is back. */
function openRequests(process: ProcessParts, { erasures }: ErasureGatedStores, onEarlyEnd: OnEarlyEnd) {
  const { config, redis, keyspace, mongo, replayLog, log } = process;
  const accountStore = createAccountStore(redis, keyspace);
  const eraser = createRequestEraser(redis, keyspace);
  const requests = createRequestStore(redis, keyspace, {
    ...process,
    leaseMs: LEASE_MS,
    disconnectGraceMs: config.limits.disconnectGraceSeconds * 1000,
    loadBalance: createLoadBalance({ accounts: createAccountRepository(mongo), accountStore, log }),
    replays: { replayLog, eraseDeleted: createEraseDeleted({ erasures, eraser }), log },
  });
  const queueLimit = config.queue.maxWaiting;
  const admissions = createAdmissionStore(redis, keyspace, { ...process, queueLimit, onEarlyEnd });
  return { requests, admissions, accountStore };
}

function openQueues({ redis, keyspace, closer, log }: ProcessParts): ChatQueues {
  const queues = createChatQueues(redis, keyspace, (error) => {
    log.warn('The queue reported an error.', { error });
  });
  closer.defer('queues', () => queues.close());
  return queues;
}

/** Serves every shard; at the end it first waits for the requests that run. */
async function startSupervisor(deps: ShardSupervisorDeps, closer: Closer): Promise<ShardSupervisor> {
  const supervisor = createShardSupervisor(deps);
  await supervisor.start();
  closer.defer('supervisor', () => supervisor.close(), { limitMs: SHARDS_CLOSING_MS });
  closer.defer('running requests', () => supervisor.drain(), { limitMs: Infinity });
  return supervisor;
}

/** Opens the places at providers, and the path to MongoDB without which this worker leads nothing. */
function openCapacitiesAndPath(process: ProcessParts, breakers: Breakers, workerId: string) {
  const { redis, keyspace, pingMongo, closer } = process;
  const store = createCapacityStore(redis, keyspace);
  const capacities = createCapacities({ ...process, store, breakers, workerId });
  closer.defer('capacities', () => capacities.stop());
  const path = watchMongoPath({ ...process, ping: pingMongo, workerId, random: Math.random });
  closer.defer('path to MongoDB', path.stop);
  return { capacities, path };
}

async function openParts(process: ProcessParts, checks: WorkerGauges['checks']) {
  const { redis, keyspace, mongo, pseudonyms } = process;
  const workerId = newId('wrk');
  const http = openHttp(process);
  const gated = withErasureGate(mongo, pseudonyms);
  const { metrics, telemetry, recorder } = openListeners(process, { checks, capacities: () => capacities.figures() });
  const onEarlyEnd: OnEarlyEnd = (...end) => {
    telemetry.emit('request.ended_early', ...end);
  };
  const breakers = await openBreakers(process, telemetry, workerId);
  const { capacities, path } = openCapacitiesAndPath(process, breakers, workerId);
  const parts: WorkerParts = {
    ...process,
    ...gated,
    ...openRequests(process, gated, onEarlyEnd),
    workerId,
    http,
    telemetry,
    breakers,
    capacities,
    leases: createLeaderLease(redis, keyspace, workerId, path.mayLead),
    queues: openQueues(process),
    onEarlyEnd,
  };
  return { parts, metrics, recorder, path };
}

/** Opens everything a worker uses and starts it; each thing opened is closed by `closer`, in reverse. */
export async function composeWorker(config: Config, log: Logger, closer: Closer, options: WorkerComposeOptions = {}) {
  const { namespace, silenceMs = BETWEEN_TOKENS_MS } = options;
  const tracing = await openTracing(config, 'worker', closer, log);
  const process = await openProcessParts('worker', { config, closer, log, tracing }, namespace);
  const { parts, metrics, recorder, path } = await openParts(process, async () => (await readiness.check()).checks);
  const { keyspace, redis, subscriber, hasReconnectedRecently } = parts;
  const { events, publishBooked, publishNotices } = await startWebhooks(parts, recorder);

  const pipeline = openPipeline(parts, silenceMs);
  parts.onReturn(pipeline.checkAll);
  const { runPipeline } = pipeline;
  const settlement = openSettlement(parts, runPipeline, async (records) =>
    publishBooked(await parts.gate.pseudonymize(records)),
  );
  startCompliance(parts, recorder, events);

  const taking: { supervisor?: ShardSupervisor; draining: boolean } = { draining: false };
  const beat = register(
    createProcessRegistry(redis, keyspace),
    { id: parts.workerId, kind: 'worker' },
    { ...parts, state: () => ({ running: taking.supervisor?.running() ?? 0, draining: taking.draining }) },
  );
  const supervisor = await startSupervisor(
    {
      ...parts,
      ...settlement,
      directory: createShardDirectory(parts.mongo, config.queue.shards),
      // A missed message costs time only: the flag in the record counts.
      listen: (shard) => subscribe(subscriber, keyspace.shard(shard).cancelled, pipeline.onCancelled),
      openWorkers: createOpenQueueWorkers(parts, {
        path,
        runPipeline,
        claims: { leaseMs: LEASE_MS, areAllowed: (shard) => !hasReconnectedRecently(shard, REPLAYED_MS) },
        onLockLost: pipeline.checkNow,
      }),
      dispatcher: openDispatcher({ ...parts, isFull: parts.memory.isFull, events }),
      publishNotices: createPublishNotices({
        ...parts,
        notices: createNoticeStore(redis, keyspace),
        publish: publishNotices,
      }),
    },
    closer,
  );

  taking.supervisor = supervisor;
  closer.defer('draining', () => {
    taking.draining = true;
    beat();
  });

  const readiness = createReadiness({
    redis: () => redis.ping(),
    mongo: parts.pingMongo,
    work: () => supervisor.assertWorking(),
  });
  return { readiness, metrics: metrics.page };
}
