import type { OnEarlyEnd } from '../shared/contracts/settlement.ts';
import type { Config } from '../shared/config/settings.ts';
import { withErasureGate } from '../shared/erasure-gate.ts';
import { createHttpClient } from './providers/http-client.ts';
import { systemClock } from '../shared/lifecycle/clock.ts';
import type { Closer } from '../shared/lifecycle/closer.ts';
import { createEventBus } from '../shared/lifecycle/event-bus.ts';
import { newId } from '../shared/lifecycle/ids.ts';
import { createReadiness } from '../shared/lifecycle/readiness.ts';
import type { Logger } from '../shared/logging/logger.ts';
import { createWorkerMetrics } from '../shared/metrics/worker-series.ts';
import type { WorkerGauges } from '../shared/metrics/worker-series.ts';
import { createAccountRepository } from '../shared/mongo/accounts/account-repository.ts';
import { readPseudonymKey } from '../shared/mongo/administration/service-secrets.ts';
import { prepareDatabase } from '../shared/mongo/administration/catalogue.ts';
import { connectMongo, watchMongo } from '../shared/mongo/connection.ts';
import { createCredentialCipher } from '../shared/mongo/credentials.ts';
import { createRoutingCache } from '../shared/mongo/routing/routing-cache.ts';
import { createRoutingRepository } from '../shared/mongo/routing/routing-repository.ts';
import { createShardDirectory } from '../shared/mongo/tenants/tenant-repository.ts';
import { createChatQueues } from '../shared/queue/queues.ts';
import type { ChatQueues } from '../shared/queue/queues.ts';
import { openRedis, subscribe } from '../shared/redis/connection.ts';
import { createKeyspace } from '../shared/redis/keyspace.ts';
import { watchMemory } from '../shared/redis/memory-watch.ts';
import { openRedisReturn } from '../shared/redis/redis-return.ts';
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
import type { Tracing } from '../shared/tracing/tracing.ts';
import { openDispatcher } from './batches/dispatcher.ts';
import { createEraseDeleted } from './compliance/erase-requests.ts';
import { startCompliance } from './compliance/start-compliance.ts';
import { watchMongoPath } from './mongo-path.ts';
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
import { createTestProvider } from './providers/test-provider.ts';
import { createOpenQueueWorkers } from './queue/open-queue-workers.ts';
import { createLoadBalance } from './settlement/settle.ts';
import { openSettlement } from './settlement/open-settlement.ts';
import { createPublishNotices } from './webhooks/publish-events.ts';
import { startWebhooks } from './webhooks/start-webhooks.ts';

type WorkerConnections = Awaited<ReturnType<typeof openConnections>>;

/**
 * The things every part of a worker needs to start: the settings, and the worker's connections to both stores, the routes in
 * force, and the HTTP client for providers.
 */
async function openConnections(config: Config, namespace: string | undefined, log: Logger, closer: Closer) {
  const keyspace = createKeyspace(namespace);
  const { redis, subscriber } = await openRedis(config.redis.url, 'worker', { keyspace, log, closer });
  const memory = watchMemory(redis, log);
  closer.defer('memory watch', () => {
    memory.stop();
  });

  await prepareDatabase(config.mongodb.uri, log);
  const mongo = await connectMongo(config.mongodb.uri);
  closer.defer('mongo', () => mongo.close());
  watchMongo(mongo, { log, closer });

  const cipher = createCredentialCipher(config.credentials.key, config.credentials.otherKeys);
  const pseudonymKey = await readPseudonymKey(mongo, cipher, config.credentials.key);
  const repository = createRoutingRepository(mongo, cipher);
  const routing = await createRoutingCache({ repository, log });
  closer.defer('routing', () => {
    routing.stop();
  });
  const http = createHttpClient();
  closer.defer('http', () => http.close());
  const testProvider = createTestProvider({ repository, adapters: createAdapters(http) });
  serveProviderTests({ redis, subscriber, keyspace }, testProvider, (error) => {
    log.warn('A provider could not be tested.', { error });
  }).catch(() => undefined);
  const process = { config, clock: systemClock, closer, log };
  return { ...process, keyspace, redis, subscriber, memory, mongo, cipher, pseudonymKey, routing, http };
}

export interface WorkerComposeOptions {
  /** Tests give each file its own. */
  namespace?: string;
  /** Silence between two pieces of text that counts as a hung provider. */
  betweenTokensMs?: number;
}

/** Milliseconds. */
interface RequestTimes {
  requestTimeoutMs: number;
  retentionMs: number;
}

/**
 * A running request's lease: a worker that is silent for so long has died (docs/spec.md#workers: 15 s in
 * all).
 */
const LEASE_MS = 10_000;
const BETWEEN_TOKENS_MS = 60_000;
/** For what has to be settled when the last request has ended. */
const SHARDS_CLOSING_MS = 5_000;

/** Whoever listens to the work without being waited for: metrics, log lines, the board's charts, traces. */
function openListeners(
  { config, redis, keyspace, mongo, routing, clock, closer, log }: WorkerConnections,
  gauges: Omit<WorkerGauges, 'unreadableProviders'>,
  tracing?: Tracing,
) {
  const metrics = createWorkerMetrics({ ...gauges, unreadableProviders: () => routing.current().unreadable.size });
  const telemetry = createEventBus<WorkerEvents>((name, error) => {
    log.error(`A listener of ${name} failed.`, { error });
  });
  measureWorker(telemetry, metrics, clock);
  logWorker(telemetry, clock, log);
  const ends = openRequestRecorder(mongo, { keptDays: config.limits.requestLogDays, clock, closer, log });
  recordRequestEnds(telemetry, ends, clock);
  const recorder = openQueueRecorder({ redis, keyspace, events: telemetry, clock, closer, log });
  if (tracing !== undefined) traceQueue(telemetry, tracing, clock);
  return { metrics, telemetry, recorder };
}

async function openBreakers(connections: WorkerConnections, telemetry: WorkerEventBus, workerId: string) {
  const { redis, subscriber, keyspace, clock, closer, log } = connections;
  const breakers = await createBreakers({
    store: createBreakerStore(redis, keyspace, telemetry),
    listen: (onChange, onMissed) => listenForBreakers(subscriber, keyspace, onChange, onMissed),
    workerId,
    events: telemetry,
    clock,
    log,
  });
  closer.defer('breakers', () => breakers.stop());
  return breakers;
}

/** Requests in Redis, and what is written there again whenever it is back. */
function openRequests(
  { config, redis, keyspace, mongo, clock, closer, log }: WorkerConnections,
  { erasures, pseudonyms }: ReturnType<typeof withErasureGate>,
  times: RequestTimes & { onEarlyEnd: OnEarlyEnd },
) {
  const { lastAwayMs, ...redisReturn } = openRedisReturn(redis, keyspace, { clock, log, closer });
  const accountStore = createAccountStore(redis, keyspace);
  const eraser = createRequestEraser(redis, keyspace);
  const requests = createRequestStore(redis, keyspace, {
    leaseMs: LEASE_MS,
    disconnectGraceMs: config.limits.disconnectGraceSeconds * 1000,
    hasReconnectedRecently: redisReturn.hasReconnectedRecently,
    lastAwayMs,
    loadBalance: createLoadBalance({ accounts: createAccountRepository(mongo), accountStore, log }),
    replays: { replayLog: redisReturn.replayLog, eraseDeleted: createEraseDeleted({ erasures, eraser }), log },
    pseudonyms,
  });
  const admissions = createAdmissionStore(redis, keyspace, { queueLimit: config.queue.maxWaiting, ...times });
  return { requests, admissions, accountStore, ...redisReturn };
}

function openQueues({ redis, keyspace, closer, log }: WorkerConnections): ChatQueues {
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

/** The places at providers, and the path to MongoDB without which this worker leads nothing. */
function openCapacitiesAndPath(
  connections: WorkerConnections,
  { breakers, workerId }: { breakers: Breakers; workerId: string },
) {
  const { redis, keyspace, mongo, closer, log } = connections;
  const capacities = createCapacities({
    ...connections,
    store: createCapacityStore(redis, keyspace),
    breakers,
    workerId,
  });
  closer.defer('capacities', () => capacities.stop());
  const pingMongo = () => mongo.db?.admin().ping() ?? Promise.reject(new Error('not connected'));
  const path = watchMongoPath({ ping: pingMongo, redis, keyspace, workerId, random: Math.random, log });
  closer.defer('path to MongoDB', path.stop);
  return { capacities, pingMongo, path };
}

/** Opens everything a worker uses and starts it; each thing opened is closed by `closer`, in reverse. */
export async function composeWorker(config: Config, log: Logger, closer: Closer, options: WorkerComposeOptions = {}) {
  const workerId = newId('wrk');
  const onEarlyEnd: OnEarlyEnd = (...end) => {
    telemetry.emit('request.ended_early', ...end);
  };
  const times = {
    onEarlyEnd,
    requestTimeoutMs: config.limits.requestTimeoutSeconds * 1000,
    retentionMs: config.limits.streamRetentionSeconds * 1000,
  };
  const tracing = await openTracing(config, 'worker', closer, log);
  const connections = await openConnections(config, options.namespace, log, closer);
  const { keyspace, redis, subscriber, memory, mongo } = connections;
  const gated = withErasureGate(mongo, connections.pseudonymKey);
  const { pseudonyms, erasures, gate } = gated;

  const { metrics, telemetry, recorder } = openListeners(
    connections,
    { checks: async () => (await readiness.check()).checks, capacities: () => capacities.figures() },
    tracing,
  );
  const breakers = await openBreakers(connections, telemetry, workerId);
  const { capacities, pingMongo, path } = openCapacitiesAndPath(connections, { breakers, workerId });
  const leases = createLeaderLease(redis, keyspace, workerId, path.mayLead);
  const common = { ...connections, ...times, workerId, telemetry, recorder, breakers, capacities, leases, pseudonyms };
  const { events, publishBooked, publishNotices } = await startWebhooks({ ...common, gate });

  const { onReturn, ...requestParts } = openRequests(connections, gated, times);
  const { hasReconnectedRecently, meet } = requestParts;
  const pipeline = openPipeline({
    ...common,
    ...requestParts,
    stores: gated,
    tracing,
    betweenTokensMs: options.betweenTokensMs ?? BETWEEN_TOKENS_MS,
  });
  onReturn(pipeline.checkAll);
  const { runPipeline } = pipeline;

  const queues = openQueues(connections);
  const settlement = openSettlement({
    ...common,
    queues,
    ...requestParts,
    ledger: gated.ledger,
    runPipeline,
    publishBooked: async (records) => publishBooked(await gate.pseudonymize(records)),
  });
  startCompliance({ ...common, ...requestParts, queues, erasures, events });

  const taking: { supervisor?: ShardSupervisor; draining: boolean } = { draining: false };
  const beat = register(
    createProcessRegistry(redis, keyspace),
    { id: workerId, kind: 'worker' },
    { ...connections, state: () => ({ running: taking.supervisor?.running() ?? 0, draining: taking.draining }) },
  );
  const supervisor = await startSupervisor(
    {
      ...settlement,
      hasReconnectedRecently,
      meet,
      directory: createShardDirectory(mongo, config.queue.shards),
      log,
      // A missed message costs time only: the flag in the record counts.
      listen: (shard) => subscribe(subscriber, keyspace.shard(shard).cancelled, pipeline.onCancelled),
      openWorkers: createOpenQueueWorkers({
        ...common,
        path,
        queues,
        runPipeline,
        claims: { leaseMs: LEASE_MS, areAllowed: (shard) => !hasReconnectedRecently(shard, REPLAYED_MS) },
        onLockLost: pipeline.checkNow,
      }),
      dispatcher: openDispatcher({ ...common, ...requestParts, queues, isFull: memory.isFull, events }),
      publishNotices: createPublishNotices({
        notices: createNoticeStore(redis, keyspace),
        leases,
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
    mongo: pingMongo,
    work: () => supervisor.assertWorking(),
  });
  return { readiness, metrics: metrics.page };
}
