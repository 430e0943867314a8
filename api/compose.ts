import type { Express } from 'express';

import { createAdmission } from '../shared/admission/admission.ts';
import { createEnqueue } from '../shared/admission/enqueue.ts';
import type { Config } from '../shared/config/load-config.ts';
import { KEPT_MS } from '../shared/contracts/kept-answer.ts';
import type { Pseudonyms } from '../shared/domain/compliance/pseudonyms.ts';
import type { Logger } from '../shared/infra/logging/logger.ts';
import { openBoardQueues } from './admin/queues/board-queues.ts';
import { openMoveTenant } from './admin/tenants/open-move-tenant.ts';
import { readQueues } from './admin/queues/queues-endpoints.ts';
import { openReplay } from './admin/requests/open-replay.ts';
import { createIngressMetrics } from '../shared/infra/metrics/registry.ts';
import type { IngressMetrics } from '../shared/infra/metrics/registry.ts';
import { createLedgerRepository } from '../shared/infra/mongo/accounts/ledger-repository.ts';
import { createRoutingCache } from '../shared/infra/mongo/routing/routing-cache.ts';
import { createRoutingRepository } from '../shared/infra/mongo/routing/routing-repository.ts';
import { createPrincipalRepository } from '../shared/infra/mongo/tenants/principal-repository.ts';
import { createQueueHistory } from '../shared/infra/redis/queues/queue-history.ts';
import { createLineStore } from '../shared/infra/redis/requests/line-store.ts';
import { createBreakerStore } from '../shared/infra/redis/routing/breaker-store.ts';
import { listenForAccessChanges } from '../shared/infra/redis/tenants/access-flags.ts';
import type { Closer } from '../shared/lifecycle/closer.ts';
import type { Emitter } from '../shared/lifecycle/event-bus.ts';
import { openTracing } from '../shared/infra/tracing/open-tracing.ts';
import { createReadiness } from '../shared/lifecycle/readiness.ts';
import { createAccept } from './admission/accept.ts';
import type { AdmissionEvents } from './admission/accept.ts';
import { createAddressGuard } from './admission/address-guard.ts';
import type { AddressGuard } from './admission/address-guard.ts';
import { createCountLookup, createCountRequest, createRefusalCounter } from './admission/count-requests.ts';
import { createLastUsed } from './admission/last-used.ts';
import { createFollowMove } from './admission/follow-move.ts';
import type { FollowMove } from './admission/follow-move.ts';
import { createPrincipalCache } from './admission/principal-cache.ts';
import { createRefund } from './admission/refund.ts';
import { createEarlyRefusal } from './admission/refuse-early.ts';
import { openRecall } from './admission/recall.ts';
import { createAdminApp } from './admin-app.ts';
import { createApp } from './app.ts';
import { createAuthenticate } from './http/authenticate.ts';
import { openRefusalWatch } from './http/refusal-watch.ts';
import { createIngressEvents } from './ingress-events.ts';
import { openConnections, openStores } from './open-stores.ts';
import type { Connections, Stores } from './open-stores.ts';
import { createPaymentRoute, openPayment } from './payments/open-payment.ts';
import type { RelayTimes } from './relay/forward.ts';
import type { RelayHub } from './relay/hub.ts';
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

interface AdmissionParts {
  hub: RelayHub;
  pseudonyms: Pseudonyms;
  follow: FollowMove;
  events: Emitter<AdmissionEvents>;
}

/** The way of a chat request into the queue, or to the answer that an earlier call has made. */
async function openAdmission(connections: Connections, stores: Stores, parts: AdmissionParts) {
  const { config, clock, closer, log, redis, keyspace, memory, recentWrites, mongo, cipher } = connections;
  const { accounts, accountStore, admissionStore, records } = stores;
  const { hub, pseudonyms, follow, events } = parts;
  const requestTimeoutMs = config.limits.requestTimeoutSeconds * 1000;
  const retentionMs = config.limits.streamRetentionSeconds * 1000;

  const routing = await createRoutingCache(createRoutingRepository(mongo, cipher), log);
  closer.defer('routing', () => {
    routing.stop();
  });
  const { recall, keepIntent, recovery } = openRecall({
    ...connections,
    accountStore,
    routing,
    pseudonyms,
    requestTimeoutMs,
    retentionMs,
    store: admissionStore,
    isFull: memory.isFull,
  });
  const enqueue = createEnqueue({
    clock,
    log,
    line: createLineStore(redis, keyspace, requestTimeoutMs),
    store: admissionStore,
    giveUpAfterMs: requestTimeoutMs,
    recentWrites,
    refund: createRefund({
      accounts,
      accountStore,
      clock,
      log,
      giveUpAfterMs: requestTimeoutMs,
      ledger: createLedgerRepository(mongo),
    }),
  });
  const admit = createAdmission({
    store: admissionStore,
    accounts,
    accountStore,
    routing,
    isFull: memory.isFull,
    takeBack: enqueue.takeBack,
    pseudonyms,
    clock,
    log,
  });
  const accept = createAccept({
    admit,
    enqueue,
    hub,
    records,
    recall,
    keepIntent,
    retention: { ordinaryMs: retentionMs, keptMs: KEPT_MS },
    follow,
    events,
  });
  return { accept, recall, keepIntent, recovery };
}

/** Where credits are bought: undefined, both, where nothing is sold. */
async function openSales(
  { config, clock, log }: Connections,
  { checkouts, purchases, tenants, accountStore }: Stores,
  { events, watchAccount }: IngressWebhooks,
  { paymentMismatches }: IngressMetrics,
  stripeApiUrl: string | undefined,
) {
  const opened = await openPayment(config, log, stripeApiUrl);
  if (opened === undefined) return { payment: undefined, paymentRoute: undefined };
  const paymentRoute = createPaymentRoute(opened, {
    checkouts,
    purchases,
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

/** Opens everything the ingress uses; each thing opened is closed by `closer`, in reverse. */
export async function composeIngress(
  config: Config,
  log: Logger,
  closer: Closer,
  options: IngressComposeOptions = {},
): Promise<Ingress> {
  const tracing = await openTracing(config, 'api', closer, log);
  const connections = await openConnections(config, options.namespace, log, closer);
  const { clock, keyspace, redis, mongo, memory } = connections;
  const stores = openStores(connections);
  const { admissionStore, audit, shardDirectory } = stores;

  const guard = createAddressGuard(clock);
  const { authenticate, principals } = await openAuthentication(connections, guard);
  const moveTenant = openMoveTenant(connections, { ...stores, clock, log });
  const follow = createFollowMove({ principals, recover: moveTenant.recover, log });
  const webhooks = await openWebhooks({ ...connections, config: config.webhooks });
  const compliance = openCompliance(connections);

  const { chat: chatQueues, background } = openBoardQueues({ ...connections, shardDirectory });
  await chatQueues();
  const metrics = createIngressMetrics({
    openReaders: () => hub.size(),
    redisMemoryRatio: memory.ratio,
    queues: () => readQueues({ ...stores, queues: chatQueues, clock }),
    workerConcurrency: config.worker.concurrency,
  });
  const telemetry = createIngressEvents(metrics, log);
  const hub = openRelay({ ...connections, ...stores, events: telemetry });
  const events = createTenantEvents([createWriteAuditLog({ audit, clock, log }), webhooks.publish], log);
  const readiness = createReadiness({
    redis: () => redis.ping(),
    mongo: () => mongo.db?.admin().ping() ?? Promise.reject(new Error('not connected')),
  });

  const { pseudonyms } = compliance;
  const { recovery, ...admission } = await openAdmission(connections, stores, {
    hub,
    pseudonyms,
    follow,
    events: telemetry,
  });
  const sales = await openSales(connections, stores, webhooks, metrics, options.stripeApiUrl);
  const stopping = new AbortController();

  const early = createEarlyRefusal(admissionStore, clock);
  const refusals = openRefusalWatch(metrics, connections);

  const common = {
    ...stores,
    refusals,
    keyPrefix: config.keyPrefix,
    events,
    clock,
    log,
  };
  const app = createApp({
    ...common,
    ...admission,
    ...sales,
    http: config.http,
    authenticate,
    countRefusal: createRefusalCounter(admissionStore, guard, follow, early.note),
    refuseEarly: early.refuse,
    countLookup: createCountLookup(admissionStore, follow),
    countRequest: createCountRequest(admissionStore, follow),
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
    queues: chatQueues,
    backgroundQueues: background,
    queueHistory: createQueueHistory(redis),
    metrics: metrics.page,
    deepHealth: async () => ({
      ...(await readiness.details()),
      open_relays: hub.size(),
      shards: await shardDirectory.list().catch(() => null),
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
