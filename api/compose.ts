import type { Express } from 'express';

import type { Config } from '../shared/config/load-config.ts';
import type { Logger } from '../shared/infra/logging/logger.ts';
import { openBoardQueues } from './admin/queues/board-queues.ts';
import { openMoveTenant } from './admin/tenants/open-move-tenant.ts';
import { readQueues } from './admin/queues/queues-endpoints.ts';
import { openReplay } from './admin/requests/open-replay.ts';
import { createIngressMetrics } from '../shared/infra/metrics/ingress-series.ts';
import type { IngressMetrics } from '../shared/infra/metrics/ingress-series.ts';
import { createPrincipalRepository } from '../shared/infra/mongo/tenants/principal-repository.ts';
import { createQueueHistory } from '../shared/infra/redis/queues/queue-history.ts';
import { createCapacityStore } from '../shared/infra/redis/routing/capacity-store.ts';
import { createBreakerStore } from '../shared/infra/redis/routing/breaker-store.ts';
import { createAnswerCache } from '../shared/infra/redis/requests/answer-cache.ts';
import { listenForAccessChanges } from '../shared/infra/redis/tenants/access-flags.ts';
import type { Closer } from '../shared/lifecycle/closer.ts';
import { openTracing } from '../shared/infra/tracing/open-tracing.ts';
import { createReadiness } from '../shared/lifecycle/readiness.ts';
import type { Readiness } from '../shared/lifecycle/readiness.ts';
import { createAddressGuard } from './admission/address-guard.ts';
import type { AddressGuard } from './admission/address-guard.ts';
import { createCountLookup, createCountRequest, createRefusalCounter } from './admission/count-requests.ts';
import { createLastUsed } from './admission/last-used.ts';
import { createFollowMove } from './admission/follow-move.ts';
import type { FollowMove } from './admission/follow-move.ts';
import { openAdmission } from './admission/open-admission.ts';
import { createPrincipalCache } from './admission/principal-cache.ts';
import { createEarlyRefusal } from './admission/refuse-early.ts';
import { createAdminApp } from './admin-app.ts';
import { createApp } from './app.ts';
import { createAuthenticate } from './http/authenticate.ts';
import { openRefusalWatch } from './http/refusal-watch.ts';
import { createIngressEvents } from './ingress-events.ts';
import { openConnections, openStores } from './open-stores.ts';
import type { Connections, Stores } from './open-stores.ts';
import { createPaymentRoute, openPayment } from './payments/open-payment.ts';
import type { RelayTimes } from './relay/forward.ts';
import { openRelay } from './relay/open-relay.ts';
import { createReaderPlaces } from './relay/reader-places.ts';
import { createWriteAuditLog } from './resources/audit-log/write-audit-log.ts';
import { openCompliance } from './resources/compliance/compliance-jobs.ts';
import { openWebhooks } from './resources/webhooks/open-webhooks.ts';
import type { IngressWebhooks } from './resources/webhooks/open-webhooks.ts';
import { createTenantEvents } from './tenant-events.ts';

export interface Ingress {
  app: Express;
  adminApp: Express;
  /** Answers complete requests that still wait, with a 503: their answers can be looked up elsewhere. */
  stopWaiting: () => void;
}

export interface IngressComposeOptions {
  /** Tests give each file its own. */
  namespace?: string;
  relayTimes?: RelayTimes;
  /** Where Stripe's API is. */
  stripeApiUrl?: string;
}

/** API keys: their principals, which follow every change, and when they were last used. */
async function openAuthentication({ config, clock, closer, mongo, subscriber }: Connections, guard: AddressGuard) {
  const repository = createPrincipalRepository(mongo);
  const principals = createPrincipalCache(repository);
  await listenForAccessChanges(subscriber, principals.invalidate, principals.clear);
  const lastUsed = createLastUsed(repository);
  closer.defer('last used', () => lastUsed.close());
  const authenticate = createAuthenticate({
    principals,
    guard,
    keyPrefix: config.keyPrefix,
    clock,
    onUse: lastUsed.note,
  });
  return { authenticate, principals };
}

interface SalesDeps
  extends Pick<IngressWebhooks, 'events' | 'watchAccount'>, Pick<IngressMetrics, 'paymentMismatches'> {
  stripeApiUrl: string | undefined;
}

/** Where credits are bought: undefined, both, where nothing is sold. */
async function openSales(
  { config, clock, log }: Connections,
  { checkouts, purchases, paymentBookings, tenants, accountStore }: Stores,
  { events, watchAccount, paymentMismatches, stripeApiUrl }: SalesDeps,
) {
  const opened = await openPayment(config, log, stripeApiUrl);
  if (opened === undefined) return { payment: undefined, paymentRoute: undefined };
  const paymentRoute = createPaymentRoute(opened, {
    checkouts,
    purchases,
    paymentBookings,
    tenants,
    accountStore,
    events,
    watchAccount,
    countMismatch: (reason) => {
      paymentMismatches.inc({ reason });
    },
    clock,
    log,
  });
  return { payment: opened.payment, paymentRoute };
}

/** The relay, and what is measured; the metrics count the relay's readers. */
async function openRelayAndMetrics(connections: Connections, stores: Stores, readiness: Readiness) {
  const { config, clock, log, memory } = connections;
  const { chat: chatQueues, background: backgroundQueues } = openBoardQueues({ ...connections, ...stores });
  await chatQueues();
  const metrics = createIngressMetrics({
    openReaders: () => hub.size(),
    redisMemoryRatio: memory.ratio,
    checks: async () => (await readiness.check()).checks,
    queues: () => readQueues({ ...stores, queues: chatQueues, clock }),
    workerConcurrency: config.worker.concurrency,
  });
  const telemetry = createIngressEvents(metrics, log);
  const hub = openRelay({ ...connections, ...stores, events: telemetry });
  return { hub, metrics, telemetry, chatQueues, backgroundQueues };
}

/** What counts a key's requests, and refuses those over its limits. */
function openCounters(
  { clock, redis, keyspace }: Connections,
  { admissionStore }: Stores,
  guard: AddressGuard,
  follow: FollowMove,
) {
  const early = createEarlyRefusal(admissionStore, createAnswerCache(redis, keyspace), clock);
  return {
    countRefusal: createRefusalCounter(admissionStore, guard, follow, early.note),
    refuseEarly: early.refuse,
    countLookup: createCountLookup(admissionStore, follow),
    countRequest: createCountRequest(admissionStore, follow),
  };
}

/** Opens everything the ingress uses; each thing opened is closed by `closer`, in reverse. */
export async function composeIngress(
  config: Config,
  log: Logger,
  closer: Closer,
  options: IngressComposeOptions = {},
): Promise<Ingress> {
  const tracing = await openTracing(config, 'api', closer, log);
  const connections = await openConnections(config, options.namespace, log, closer);
  const { clock, keyspace, redis, mongo } = connections;
  const stores = openStores(connections);

  const guard = createAddressGuard(clock);
  const { authenticate, principals } = await openAuthentication(connections, guard);
  const moveTenant = openMoveTenant(connections, { ...stores, clock, log });
  const follow = createFollowMove({ principals, recover: moveTenant.recover, log });
  const webhooks = await openWebhooks({ ...connections, config: config.webhooks });
  const compliance = openCompliance(connections);

  const readiness = createReadiness({
    redis: () => redis.ping(),
    mongo: () => mongo.db?.admin().ping() ?? Promise.reject(new Error('not connected')),
  });
  const { hub, metrics, telemetry, ...queues } = await openRelayAndMetrics(connections, stores, readiness);
  const writeAuditLog = createWriteAuditLog({ audit: stores.audit, clock, log });
  const events = createTenantEvents([writeAuditLog, webhooks.publish], log);

  const { pseudonyms } = compliance;
  const { recovery, ...admission } = await openAdmission(connections, stores, {
    hub,
    pseudonyms,
    follow,
    events: telemetry,
  });
  const sales = await openSales(connections, stores, { ...webhooks, ...metrics, stripeApiUrl: options.stripeApiUrl });
  const stopping = new AbortController();

  const common = {
    ...stores,
    refusals: openRefusalWatch(metrics, connections),
    keyPrefix: config.keyPrefix,
    events,
    clock,
    log,
  };
  const app = createApp({
    ...common,
    ...admission,
    ...sales,
    ...openCounters(connections, stores, guard, follow),
    http: config.http,
    authenticate,
    webhooks: webhooks.parts,
    compliance,
    hub,
    readerPlaces: createReaderPlaces(),
    readiness,
    metrics,
    tracing,
    requestTimeoutMs: config.limits.requestTimeoutSeconds * 1000,
    stopping: stopping.signal,
    relayTimes: options.relayTimes ?? {},
  });

  const adminApp = createAdminApp({
    ...common,
    replayFailed: openReplay({ ...connections, ...stores, recovery, pseudonyms, metrics }),
    http: config.http,
    adminTokens: config.adminTokens,
    metricsAccess: config.metrics,
    providerRules: config.providers,
    moveTenant,
    breakers: createBreakerStore(redis, keyspace, telemetry),
    capacities: createCapacityStore(redis, keyspace),
    queues: queues.chatQueues,
    backgroundQueues: queues.backgroundQueues,
    queueHistory: createQueueHistory(redis),
    metrics: metrics.page,
    deepHealth: async () => ({
      ...(await readiness.details()),
      open_relays: hub.size(),
      shards: await stores.shardDirectory.list().catch(() => null),
    }),
  });
  return {
    app,
    adminApp,
    stopWaiting: () => {
      stopping.abort();
    },
  };
}
