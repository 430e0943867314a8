import type { Config } from '../shared/config/settings.ts';
import { adminTokensOf } from '../shared/config/secret-settings.ts';
import type { Closer } from '../shared/lifecycle/closer.ts';
import { createEventBus } from '../shared/lifecycle/event-bus.ts';
import type { EventBus } from '../shared/lifecycle/event-bus.ts';
import { newId } from '../shared/lifecycle/ids.ts';
import { createReadiness, createServing } from '../shared/lifecycle/readiness.ts';
import type { Serving } from '../shared/lifecycle/readiness.ts';
import { logBreakerChange } from '../shared/logging/logger.ts';
import type { Logger } from '../shared/logging/logger.ts';
import { createIngressMetrics } from '../shared/metrics/ingress-series.ts';
import type { IngressMetrics } from '../shared/metrics/ingress-series.ts';
import { createPrincipalRepository } from '../shared/mongo/tenants/principal-repository.ts';
import { openProcessParts } from '../shared/process-parts.ts';
import { listenForAccessChanges } from '../shared/redis/stores/access-flags.ts';
import { createBreakerStore } from '../shared/redis/stores/breaker-store.ts';
import type { BreakerEvents } from '../shared/redis/stores/breaker-store.ts';
import { createCapacityStore } from '../shared/redis/stores/capacity-store.ts';
import { createProcessRegistry, register, untilWorkersKnow } from '../shared/redis/stores/process-registry.ts';
import { createProviderTests } from '../shared/redis/stores/provider-tests.ts';
import { createQueueHistory } from '../shared/redis/stores/queue-history.ts';
import { createAnswerCache } from '../shared/requests/answers.ts';
import { openTracing } from '../shared/tracing/open-tracing.ts';
import { createAdminApp } from './admin-app.ts';
import { createApp } from './app.ts';
import { openStores } from './open-stores.ts';
import type { IngressParts } from './open-stores.ts';
import { openBoardQueues } from './admin/queues/board.ts';
import { readQueues } from './admin/queues/queues-endpoints.ts';
import { openReplay } from './admin/requests/replay-failed.ts';
import { openMoveTenant } from './admin/tenants/move-tenant.ts';
import type { AdmissionEvents } from './chat/accept.ts';
import { openAdmission } from './chat/open-chat.ts';
import { createTenantEvents } from './contract/tenant-events.ts';
import { createAuthenticate, createLastUsed, createPrincipalCache } from './http/authenticate.ts';
import { openRefusalWatch } from './http/refusal-watch.ts';
import { createAddressGuard } from './http/address-guard.ts';
import type { AddressGuard } from './http/address-guard.ts';
import { createCountLookup, createCountRequest, createRefusalCounter } from './http/count-requests.ts';
import { createEarlyRefusal } from './http/early-refusal.ts';
import { createFollowMove } from './http/follow-move.ts';
import { createPaymentRoute, openPayment } from './payments/open-payment.ts';
import { countWaiting } from './relay/answer.ts';
import type { RelayTimes } from './relay/answer.ts';
import { openRelay } from './relay/hub.ts';
import type { RelayEvents, RelayHub } from './relay/hub.ts';
import { createReaderPlaces } from './relay/reader-places.ts';
import { createWriteAuditLog } from './resources/audit-log-endpoints.ts';
import { openCompliance } from './resources/compliance/compliance-jobs.ts';
import { openWebhooks } from './resources/webhooks/open-webhooks.ts';
import type { IngressWebhooks } from './resources/webhooks/open-webhooks.ts';

interface IngressEvents extends AdmissionEvents, BreakerEvents, RelayEvents {}

/** Metrics and log already listen to it. */
function createIngressEvents(metrics: IngressMetrics, log: Logger): EventBus<IngressEvents> {
  const events = createEventBus<IngressEvents>((name, error) => {
    log.error(`A listener of ${name} failed.`, { error });
  });
  events.on('admission.decided', (verdict) => {
    metrics.admissions.inc({ verdict });
  });
  events.on('relay.gap_filled', () => {
    metrics.relayGapsFilled.inc();
  });
  events.on('breaker.changed', (change) => {
    metrics.breakerChanges.inc({ provider: change.provider, from: change.from, to: change.to });
    logBreakerChange(log, change);
  });
  return events;
}

export type Ingress = Awaited<ReturnType<typeof composeIngress>>;

export interface IngressComposeOptions {
  /** The process's own state, from its start on. */
  serving?: Serving;
  /** Tests give each file its own. */
  namespace?: string;
  relayTimes?: RelayTimes;
  stripeApiUrl?: string;
}

/** API keys: their principals, which follow every change, and when they were last used. */
async function openAuthentication({ config, clock, closer, mongo, subscriber }: IngressParts, guard: AddressGuard) {
  const repository = createPrincipalRepository(mongo);
  const principals = createPrincipalCache(repository);
  await listenForAccessChanges(subscriber, principals.invalidate, principals.clear);
  const lastUsed = createLastUsed(repository);
  closer.defer('last used', () => lastUsed.close());
  const authenticate = createAuthenticate({
    principals,
    guard,
    keyPrefix: config.process.keyPrefix,
    clock,
    onUse: lastUsed.note,
  });
  return { authenticate, principals };
}

/** Both are undefined where nothing is sold. */
async function openSales(
  parts: IngressParts,
  webhooks: IngressWebhooks,
  metrics: IngressMetrics,
  stripeApiUrl: string | undefined,
) {
  const opened = await openPayment(parts.config, parts.log, stripeApiUrl);
  if (opened === undefined) return { payment: undefined, paymentRoute: undefined };
  const paymentRoute = createPaymentRoute(opened, {
    ...parts,
    ...webhooks,
    countMismatch: (reason) => {
      metrics.paymentMismatches.inc({ reason });
    },
  });
  return { payment: opened.payment, paymentRoute };
}

/** Opened together, because the metrics count the relay's readers. */
async function openRelayAndMetrics(parts: IngressParts) {
  const { config, log, memory, redis, pingMongo, shardDirectory } = parts;
  const readiness = createReadiness({ redis: () => redis.ping(), mongo: pingMongo });
  const { chat: chatQueues, background: backgroundQueues } = openBoardQueues(parts, shardDirectory);
  await chatQueues();
  const { concurrency: workerConcurrency } = config.worker;
  const metrics = createIngressMetrics({
    openReaders: () => hub.size(),
    redisMemoryRatio: memory.ratio,
    checks: async () => (await readiness.check()).checks,
    queues: () => readQueues({ ...parts, queues: chatQueues, workerConcurrency }),
    workerConcurrency,
  });
  const telemetry = createIngressEvents(metrics, log);
  const hub = openRelay({ ...parts, events: telemetry });
  const deepHealth = async () => ({
    ...(await readiness.details()),
    open_relays: hub.size(),
    shards: await shardDirectory.list().catch(() => null),
  });
  return { deepHealth, hub, metrics, telemetry, queues: chatQueues, backgroundQueues, workerConcurrency };
}

/** Knows callers by their keys, follows tenants that move, counts requests, and refuses those over a key's limits. */
async function openAccess(parts: IngressParts) {
  const { clock, log, redis, keyspace, admissionStore, batchQueue } = parts;
  const guard = createAddressGuard(clock);
  const { authenticate, principals } = await openAuthentication(parts, guard);
  const moveTenant = openMoveTenant(parts, parts);
  const follow = createFollowMove({ principals, recover: moveTenant.recover, log });
  const answers = createAnswerCache(redis, keyspace);
  const early = createEarlyRefusal(admissionStore, answers, batchQueue.assertMayWrite, clock);
  const guards = {
    authenticate,
    countRefusal: createRefusalCounter(admissionStore, guard, follow, early.note),
    refuseEarly: early.refuse,
    countLookup: createCountLookup(admissionStore, follow),
    countRequest: createCountRequest(admissionStore, follow),
  };
  return { guards, follow, moveTenant };
}

function openAdministration({ config, redis, keyspace }: IngressParts, events: EventBus<IngressEvents>) {
  return {
    adminTokens: adminTokensOf(config.admin),
    metricsAccess: config.metrics,
    providerRules: config.providers,
    isTargetCostRequired: config.providers.requireCost,
    breakers: createBreakerStore(redis, keyspace, events),
    capacities: createCapacityStore(redis, keyspace),
    providerTests: createProviderTests(redis, keyspace),
    queueHistory: createQueueHistory(redis),
  };
}

/** Tells load balancers, callers and the other processes how this ingress begins and ends. */
function openLife(parts: IngressParts, serving: Serving, hub: RelayHub) {
  const { redis, keyspace, log } = parts;
  const stopping = new AbortController();
  const processes = createProcessRegistry(redis, keyspace);
  const state = () => ({ running: hub.size(), draining: serving.isStopping() });
  const beat = register(processes, { id: newId('ing'), kind: 'ingress' }, { ...parts, state });
  const ends = {
    /** Says to load balancers and in the registry that this ingress stops. */
    stopServing: () => {
      serving.stop();
      beat();
    },
    untilWorkersKnow: () => untilWorkersKnow(processes, serving, log),
    /** Tells every client of an open answer where it goes on: complete requests by a 503, streams by a comment. */
    stopWaiting: () => {
      const count = countWaiting(stopping.signal);
      if (count > 0)
        log.warn('The grace is over: answers are cut, and each caller is told where his goes on.', { count });
      stopping.abort();
    },
  };
  return { processes, stopping: stopping.signal, ends };
}

/** Opens everything the ingress uses; each thing opened is closed by `closer`, in reverse. */
export async function composeIngress(config: Config, log: Logger, closer: Closer, options: IngressComposeOptions = {}) {
  const { serving = createServing(), relayTimes = {} } = options;
  const tracing = await openTracing(config, 'api', closer, log);
  const process = await openProcessParts('api', { config, closer, log, tracing }, options.namespace, (store) => {
    serving.waitFor({ [store]: 'no answer' });
  });
  const parts = await openStores(process);

  const { guards, follow, moveTenant } = await openAccess(parts);
  const webhooks = await openWebhooks(parts);
  const compliance = openCompliance(parts);

  const { hub, metrics, telemetry, ...watched } = await openRelayAndMetrics(parts);
  const events = createTenantEvents([createWriteAuditLog(parts), webhooks.publish], log);

  const { recovery, ...admission } = openAdmission(parts, { hub, follow, events: telemetry });
  const sales = await openSales(parts, webhooks, metrics, options.stripeApiUrl);
  const { processes, stopping, ends } = openLife(parts, serving, hub);

  const common = {
    ...parts,
    refusals: openRefusalWatch(metrics, parts),
    http: config.http,
    keyPrefix: config.process.keyPrefix,
    events,
    compliance,
    readerPlaces: createReaderPlaces(),
    relayTimes,
  };
  const app = createApp({
    ...common,
    ...admission,
    ...sales,
    ...guards,
    webhooks: webhooks.parts,
    hub,
    serving,
    metrics,
    stopping,
  });

  const adminApp = createAdminApp({
    ...common,
    ...watched,
    ...openAdministration(parts, telemetry),
    replayFailed: openReplay(parts, recovery, metrics),
    moveTenant,
    processes,
    metrics: metrics.page,
  });
  if (options.serving === undefined) serving.waitFor({});
  return { app, adminApp, readiness: serving, metrics: metrics.page, ...ends };
}
