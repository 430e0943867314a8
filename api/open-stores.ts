import { createAccountRepository } from '../shared/mongo/accounts/account-repository.ts';
import { createCheckoutRepository } from '../shared/mongo/accounts/checkout-repository.ts';
import { createLedgerRepository } from '../shared/mongo/accounts/ledger-repository.ts';
import { createPaymentBookings } from '../shared/mongo/accounts/payment-bookings.ts';
import { createPriceRepository } from '../shared/mongo/accounts/price-repository.ts';
import { createPurchaseRepository } from '../shared/mongo/accounts/purchase-repository.ts';
import { createUsageRepository } from '../shared/mongo/accounts/usage-repository.ts';
import { createRequestLog, openRequestRecorder } from '../shared/mongo/requests/request-log.ts';
import { createAdminAuditRepository } from '../shared/mongo/administration/admin-audit-repository.ts';
import { createCredentialRotation } from '../shared/mongo/administration/rotate-credentials.ts';
import { createBatchRepository } from '../shared/mongo/batches/batch-repository.ts';
import { connectMongo } from '../shared/mongo/connection.ts';
import type { MongoConnection } from '../shared/mongo/connection.ts';
import { createEntityRepository } from '../shared/mongo/entities/entity-repository.ts';
import { createIdempotencyRepository } from '../shared/mongo/requests/idempotency-repository.ts';
import { createProviderRepository } from '../shared/mongo/routing/provider-repository.ts';
import { createPublishedModels, createTierRepository } from '../shared/mongo/routing/tier-repository.ts';
import { createAuditRepository } from '../shared/mongo/tenants/audit-repository.ts';
import { createKeyRepository } from '../shared/mongo/tenants/key-repository.ts';
import { createShardDirectory, createTenantRepository } from '../shared/mongo/tenants/tenant-repository.ts';
import type { ProcessParts } from '../shared/process-parts.ts';
import type { ReplayLog } from '../shared/redis/redis-return.ts';
import { createAccessFlags } from '../shared/redis/stores/access-flags.ts';
import { createAccountStore, createLastDrift } from '../shared/redis/stores/account-store.ts';
import type { AccountStore } from '../shared/redis/stores/account-store.ts';
import { createAdminAccessStore } from '../shared/redis/stores/admin-access-store.ts';
import type { AdminAccessStore } from '../shared/redis/stores/admin-access-store.ts';
import { inTime } from '../shared/redis/time-limits.ts';
import { createAdmissionStore } from '../shared/requests/admission-store.ts';
import { createStreamReader } from '../shared/requests/answers.ts';
import { createOutbox } from '../shared/requests/outbox.ts';
import { createBatchQueue, createQueueStatistics } from '../shared/requests/queue-store.ts';
import { createAcceptanceClock, createRecordStore } from '../shared/requests/record-store.ts';
import { createRequestEraser } from '../shared/requests/request-eraser.ts';
import { ADMIN_FAILURES_PER_MINUTE } from './admin/access/authenticate-admin.ts';
import { pricesUnset } from './payments/open-payment.ts';

/** A report adds up thousands of rows; no chat request waits for it. */
const REPORT_CALL_MS = 3_000;
/** A batch moves megabytes: it stores a group of lines and deletes ten thousand at once. */
const BULK_CALL_MS = 10_000;

/** A book that Redis has lost would return only with the tenant's next charge, and without credits there is none. */
function withRecent(store: AccountStore, replayLog: ReplayLog): AccountStore {
  return {
    ...store,
    publishBalance: (shard, tenantId, book) =>
      replayLog.perform(() => store.publishBalance(shard, tenantId, book), { shard, tenantId }),
  };
}

/** A session whose end Redis has lost would be open again. */
function withRecentEnds(store: AdminAccessStore, replayLog: ReplayLog): AdminAccessStore {
  return {
    ...store,
    endSession: (...session) =>
      replayLog.perform(() => store.endSession(...session), { reason: 'end of an admin session' }),
  };
}

export type IngressParts = Awaited<ReturnType<typeof openStores>>;

export async function openStores(parts: ProcessParts) {
  const { config, keyspace, redis, replayLog, cipher, mongo, closer, requestTimeoutMs, retentionMs } = parts;
  const { limits, queue } = config;

  /** The driver has one time limit per connection; these are for longer calls. */
  async function connect(name: string, callTimeoutMs: number): Promise<MongoConnection> {
    const connection = await connectMongo(config.mongodb.uri, { callTimeoutMs });
    closer.defer(name, () => connection.close());
    return connection;
  }
  const reports = await connect('mongo for reports', REPORT_CALL_MS);
  const bulk = await connect('mongo for batches', BULK_CALL_MS);
  const recorder = openRequestRecorder(mongo, { keptDays: limits.requestLogDays, ...parts });
  const ends = { retentionMs, onEarlyEnd: recorder.endEarly };
  return {
    ...parts,
    tenants: createTenantRepository(mongo),
    keys: createKeyRepository(mongo),
    audit: createAuditRepository(mongo),
    adminAudit: createAdminAuditRepository(mongo),
    requestLog: createRequestLog(mongo),
    recorder,
    adminAccess: withRecentEnds(
      createAdminAccessStore(redis, keyspace, { failuresPerMinute: ADMIN_FAILURES_PER_MINUTE }),
      replayLog,
    ),
    entities: createEntityRepository(mongo),
    entityRequests: createRequestEraser(redis, keyspace),
    idempotency: createIdempotencyRepository(mongo),
    batches: createBatchRepository(mongo, bulk),
    accounts: createAccountRepository(mongo),
    ledger: createLedgerRepository(mongo),
    usage: createUsageRepository(reports),
    prices: createPriceRepository(mongo, pricesUnset(config)),
    checkouts: createCheckoutRepository(mongo),
    purchases: createPurchaseRepository(mongo),
    paymentBookings: createPaymentBookings(mongo),
    providers: createProviderRepository(mongo, cipher),
    credentials: createCredentialRotation(bulk, cipher),
    tiers: createTierRepository(mongo),
    publishedModels: createPublishedModels(mongo),
    shardDirectory: createShardDirectory(mongo, queue.shards),

    admissionStore: createAdmissionStore(redis, keyspace, { ...ends, queueLimit: queue.maxWaiting, requestTimeoutMs }),
    records: createRecordStore(redis, keyspace, { ...ends, replayLog }),
    streams: createStreamReader(redis, keyspace, inTime),
    acceptanceClock: createAcceptanceClock(redis, keyspace),
    accountStore: withRecent(createAccountStore(redis, keyspace, inTime), replayLog),
    accessFlags: createAccessFlags(redis, keyspace),
    outbox: createOutbox(redis, keyspace),
    queueStatistics: createQueueStatistics(redis, keyspace),
    batchQueue: createBatchQueue(redis, keyspace),
    lastDrift: createLastDrift(redis, keyspace),
  };
}
