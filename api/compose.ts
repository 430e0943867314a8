import type { Express } from 'express';

import { createAdmission } from '../shared/admission/admission.ts';
import { createEnqueue } from '../shared/admission/enqueue.ts';
import type { Config } from '../shared/config/load-config.ts';
import type { Logger } from '../shared/infra/logging/logger.ts';
import { createIngressMetrics } from '../shared/infra/metrics/registry.ts';
import { QUEUE_NAMES } from '../shared/contracts/jobs.ts';
import { KEPT_MS } from '../shared/contracts/kept-answer.ts';
import { createAccountRepository } from '../shared/infra/mongo/accounts/account-repository.ts';
import { connectMongo } from '../shared/infra/mongo/connection.ts';
import { createAuditRepository } from '../shared/infra/mongo/tenants/audit-repository.ts';
import { createCheckoutRepository } from '../shared/infra/mongo/accounts/checkout-repository.ts';
import { createCredentialCipher } from '../shared/infra/mongo/credentials.ts';
import { createEntityRepository } from '../shared/infra/mongo/entities/entity-repository.ts';
import { createIdempotencyRepository } from '../shared/infra/mongo/requests/idempotency-repository.ts';
import { createKeyRepository } from '../shared/infra/mongo/tenants/key-repository.ts';
import { createLedgerRepository } from '../shared/infra/mongo/accounts/ledger-repository.ts';
import { prepareDatabase } from '../shared/infra/mongo/catalogue.ts';
import { createPriceRepository } from '../shared/infra/mongo/accounts/price-repository.ts';
import { createPrincipalRepository } from '../shared/infra/mongo/tenants/principal-repository.ts';
import { createProviderRepository } from '../shared/infra/mongo/routing/provider-repository.ts';
import { createPurchaseRepository } from '../shared/infra/mongo/accounts/purchase-repository.ts';
import { createRoutingCache } from '../shared/infra/mongo/routing/routing-cache.ts';
import { createRoutingRepository } from '../shared/infra/mongo/routing/routing-repository.ts';
import { createShardDirectory, createTenantRepository } from '../shared/infra/mongo/tenants/tenant-repository.ts';
import { createTierRepository } from '../shared/infra/mongo/routing/tier-repository.ts';
import { createUsageRepository } from '../shared/infra/mongo/accounts/usage-repository.ts';
import { createChatQueues } from '../shared/infra/queue/chat-queue.ts';
import { createAcceptanceClock } from '../shared/infra/redis/requests/request-eraser.ts';
import { createAccessFlags, listenForAccessChanges } from '../shared/infra/redis/tenants/access-flags.ts';
import { createLastDrift } from '../shared/infra/redis/accounts/last-drift.ts';
import { createOutbox } from '../shared/infra/redis/requests/outbox.ts';
import { createAccountStore } from '../shared/infra/redis/accounts/account-store.ts';
import { createAdmissionStore } from '../shared/infra/redis/requests/admission-store.ts';
import { createStreamReader } from '../shared/infra/redis/requests/stored-answers.ts';
import { createBreakerStore } from '../shared/infra/redis/routing/breaker-store.ts';
import { createBodyStore, createRecordStore } from '../shared/infra/redis/requests/record-store.ts';
import { createChunkChannel } from '../shared/infra/redis/requests/request-channels.ts';
import { openRedis } from '../shared/infra/redis/connection.ts';
import { watchMemory } from '../shared/infra/redis/memory-watch.ts';
import { createKeyspace } from '../shared/infra/redis/keyspace.ts';
import { createLaneStatistics } from '../shared/infra/redis/requests/lane-store.ts';
import { inTime } from '../shared/infra/redis/timing.ts';
import { systemClock } from '../shared/lifecycle/clock.ts';
import type { Closer } from '../shared/lifecycle/closer.ts';
import { newId } from '../shared/lifecycle/ids.ts';
import { createReadiness } from '../shared/lifecycle/readiness.ts';
import { createAccept } from './admission/accept.ts';
import { createCountLookup, createCountRequest, createRefusalCounter } from './admission/count-requests.ts';
import { createLastUsed } from './admission/last-used.ts';
import { createPrincipalCache } from './admission/principal-cache.ts';
import { openRecall } from './admission/open-recall.ts';
import { createAdminApp } from './admin-app.ts';
import { createApp } from './app.ts';
import { createWriteAuditLog } from './resources/audit-log/write-audit-log.ts';
import { openBatches } from './resources/batches/open-batches.ts';
import { openCompliance } from './resources/compliance/compliance-jobs.ts';
import { createAuthenticate } from './http/authenticate.ts';
import { openPayment, pricesUnset, createPaymentRoute } from './payments/open-payment.ts';
import type { RelayTimes } from './relay/forward.ts';
import { createRelayHub } from './relay/hub.ts';
import { createIngressEvents } from './ingress-events.ts';
import { createTenantEvents } from './tenant-events.ts';
import { openWebhooks } from './resources/webhooks/webhooks-deps.ts';

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

/** A caller waits for these calls. */
const MONGO_CALL_MS = 1_000;
/** A report adds up thousands of rows; no chat request waits for it. */
const REPORT_CALL_MS = 3_000;

/** Opens everything the ingress uses; each thing opened is closed by `closer`, in reverse. */
export async function composeIngress(
  config: Config,
  log: Logger,
  closer: Closer,
  options: IngressComposeOptions = {},
): Promise<Ingress> {
  const clock = systemClock;
  const keyspace = createKeyspace(options.namespace);
  const requestTimeoutMs = config.limits.requestTimeoutSeconds * 1000;
  const retentionMs = config.limits.streamRetentionSeconds * 1000;

  const { redis, subscriber } = await openRedis(config.redisUrl, 'producer', log, closer);
  const memory = watchMemory(redis, log);
  closer.defer('memory watch', () => {
    memory.stop();
  });

  await prepareDatabase(config.mongodbUri);
  const mongo = await connectMongo(config.mongodbUri, { callTimeoutMs: MONGO_CALL_MS });
  closer.defer('mongo', () => mongo.close());
  const reports = await connectMongo(config.mongodbUri, { callTimeoutMs: REPORT_CALL_MS });
  closer.defer('mongo for reports', () => reports.close());

  const cipher = createCredentialCipher(config.credentialsKey);
  const routing = await createRoutingCache(createRoutingRepository(mongo, cipher), log);
  closer.defer('routing', () => {
    routing.stop();
  });

  const principalRepository = createPrincipalRepository(mongo);
  const principals = createPrincipalCache(principalRepository);
  await listenForAccessChanges(subscriber, principals.invalidate, principals.clear);
  const stores = { mongo, redis, subscriber, keyspace };
  const webhooks = await openWebhooks({ ...stores, cipher, config: config.webhooks, clock, closer, log });
  const compliance = openCompliance({ mongo, redis, keyspace, credentialsKey: config.credentialsKey, closer, log });
  const lastUsed = createLastUsed(principalRepository);
  closer.defer('last used', () => lastUsed.close());

  const queues = createChatQueues(redis, keyspace, (error) => {
    log.warn('The queue reported an error.', { error });
  });
  closer.defer('queues', () => queues.close());

  const streams = createStreamReader(redis, keyspace, inTime);
  const records = createRecordStore(redis, keyspace, { retentionMs });
  const hub = createRelayHub({
    channel: createChunkChannel(subscriber, keyspace, newId('ing')),
    reader: streams,
    records,
    now: clock.now,
    log,
  });
  closer.defer('relay', () => {
    hub.close();
  });
  const metrics = createIngressMetrics({ openReaders: hub.size, redisMemoryRatio: memory.ratio });
  const telemetry = createIngressEvents(metrics, log);
  const stopping = new AbortController();

  const admissionStore = createAdmissionStore(redis, keyspace, {
    laneLimit: config.queue.maxWaiting,
    requestTimeoutMs,
    retentionMs,
  });
  const accountStore = createAccountStore(redis, keyspace, inTime);
  const accounts = createAccountRepository(mongo);
  const { pseudonyms } = compliance;
  const { recall, keepIntent } = openRecall({
    ...{ mongo, redis, keyspace, queues, store: admissionStore, accountStore, routing, pseudonyms, requestTimeoutMs },
    ...{ isFull: memory.isFull, retentionMs, clock, log },
  });
  const enqueue = createEnqueue({
    queues,
    clock,
    log,
    bodies: createBodyStore(redis, keyspace, requestTimeoutMs),
    store: admissionStore,
    giveUpAfterMs: requestTimeoutMs,
  });
  const readiness = createReadiness({
    redis: () => redis.ping(),
    mongo: () => mongo.db?.admin().ping() ?? Promise.reject(new Error('not connected')),
  });

  const tenants = createTenantRepository(mongo);
  const keys = createKeyRepository(mongo);
  const accessFlags = createAccessFlags(redis, keyspace);
  const audit = createAuditRepository(mongo);
  const events = createTenantEvents([createWriteAuditLog({ audit, clock, log }), webhooks.publish], log);

  const checkouts = createCheckoutRepository(mongo);
  const purchases = createPurchaseRepository(mongo);
  const prices = createPriceRepository(mongo, pricesUnset(config));
  const opened = await openPayment(config, log, options.stripeApiUrl);

  const app = createApp({
    keys,
    tenants,
    keyPrefix: config.keyPrefix,
    accessFlags,
    audit,
    usage: createUsageRepository(reports),
    entities: createEntityRepository(mongo),
    acceptanceClock: createAcceptanceClock(redis, keyspace),
    events,
    webhooks: webhooks.parts,
    batches: await openBatches(config.mongodbUri, mongo, closer),
    compliance,
    accounts,
    accountStore,
    checkouts,
    purchases,
    prices,
    payment: opened?.payment,
    paymentRoute:
      opened &&
      createPaymentRoute(opened, {
        checkouts,
        purchases,
        tenants,
        accountStore,
        events: webhooks.events,
        watchAccount: webhooks.watchAccount,
        countMismatch: (reason) => {
          metrics.paymentMismatches.inc({ reason });
        },
        clock,
        log,
      }),
    idempotency: createIdempotencyRepository(mongo),
    http: config.http,
    authenticate: createAuthenticate({ principals, keyPrefix: config.keyPrefix, clock, onUse: lastUsed.note }),
    countRefusal: createRefusalCounter(admissionStore),
    countLookup: createCountLookup(admissionStore),
    countRequest: createCountRequest(admissionStore),
    records,
    streams,
    ledger: createLedgerRepository(mongo),
    recall,
    clock,
    accept: createAccept({
      admit: createAdmission({
        store: admissionStore,
        accounts,
        accountStore,
        routing,
        isFull: memory.isFull,
        takeBack: enqueue.takeBack,
        pseudonyms,
        clock,
        log,
      }),
      enqueue,
      hub,
      records,
      recall,
      keepIntent,
      retention: { ordinaryMs: retentionMs, keptMs: KEPT_MS },
      events: telemetry,
    }),
    hub,
    readiness,
    metrics,
    requestTimeoutMs,
    stopping: stopping.signal,
    relayTimes: options.relayTimes ?? {},
    log,
  });

  const shardDirectory = createShardDirectory(mongo, config.queue.shards);
  const shards = await shardDirectory.list();
  const adminApp = createAdminApp({
    adminToken: config.adminToken,
    keyPrefix: config.keyPrefix,
    shards: config.queue.shards,
    tenants,
    keys,
    prices,
    providers: createProviderRepository(mongo, cipher),
    tiers: createTierRepository(mongo),
    accessFlags,
    events,
    breakers: createBreakerStore(redis, keyspace, telemetry),
    laneStatistics: createLaneStatistics(redis, keyspace),
    shardDirectory,
    outbox: createOutbox(redis, keyspace),
    lastDrift: createLastDrift(redis, keyspace),
    queues: shards.flatMap((shard) => QUEUE_NAMES.map((lane) => queues.queue(shard, lane))),
    metrics: metrics.page,
    deepHealth: async () => ({ ...(await readiness.check()), open_relays: hub.size(), shards }),
    accounts,
    accountStore,
    clock,
    log,
  });
  return {
    app,
    adminApp,
    stopWaiting: () => {
      stopping.abort();
    },
  };
}
