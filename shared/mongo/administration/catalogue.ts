import type { Connection, mongo } from 'mongoose';

import { accountModel } from '../accounts/account-repository.ts';
import { checkoutModel } from '../accounts/checkout-repository.ts';
import { ledgerCheckpointModel } from '../accounts/ledger-audit.ts';
import { ledgerModel } from '../accounts/ledger-repository.ts';
import { paymentEventModel } from '../accounts/payment-notices.ts';
import { priceListModel } from '../accounts/price-repository.ts';
import { purchaseModel } from '../accounts/purchase-repository.ts';
import { usageRollUpModel } from '../accounts/usage-repository.ts';
import type { Logger } from '../../logging/logger.ts';
import { adminAuditModel } from './admin-audit-repository.ts';
import { serviceSecretModel } from './service-secrets.ts';
import { batchLineModel } from '../batches/batch-lines.ts';
import { batchModel } from '../batches/batch-repository.ts';
import { complianceJobModel } from '../compliance/compliance-job-repository.ts';
import { erasureModel } from '../compliance/erasure-repository.ts';
import { exportChunkModel } from '../compliance/export-archive-repository.ts';
import { connectMongo, onceMongoIsThere } from '../connection.ts';
import { entityModel } from '../entities/entity-repository.ts';
import { entityCountModel } from '../entities/entity-room.ts';
import { answerModel } from '../requests/answer-repository.ts';
import { idempotencyModel } from '../requests/idempotency-repository.ts';
import { requestIntentModel } from '../requests/request-intents.ts';
import { refusalCountModel, requestLogModel } from '../requests/request-log.ts';
import { providerModel } from '../routing/provider-repository.ts';
import { publishedModelModel, tierModel, tierVersionModel } from '../routing/tier-repository.ts';
import { mongoServerFault } from '../faults.ts';
import { auditModel } from '../tenants/audit-repository.ts';
import { keyModel } from '../tenants/key-repository.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';
import { webhookDeliveryModel, webhookEventModel } from '../webhooks/webhook-delivery-repository.ts';
import { webhookModel } from '../webhooks/webhook-repository.ts';

/** An index on a large collection takes its time. */
const INDEX_BUILD_MS = 120_000;

/**
 * Every collection of the database. One that is missing here is neither created nor indexed; a type error or a test
 * says so where exports and deletions have to know it.
 */
const COLLECTIONS = {
  tenants: tenantModel,
  keys: keyModel,
  audit: auditModel,
  adminAudit: adminAuditModel,
  serviceSecrets: serviceSecretModel,
  providers: providerModel,
  tiers: tierModel,
  tierVersions: tierVersionModel,
  publishedModels: publishedModelModel,
  accounts: accountModel,
  ledger: ledgerModel,
  ledgerCheckpoints: ledgerCheckpointModel,
  usageRollUps: usageRollUpModel,
  checkouts: checkoutModel,
  purchases: purchaseModel,
  paymentEvents: paymentEventModel,
  priceLists: priceListModel,
  answers: answerModel,
  idempotency: idempotencyModel,
  requestIntents: requestIntentModel,
  requestLog: requestLogModel,
  refusalCounts: refusalCountModel,
  entities: entityModel,
  entityCounts: entityCountModel,
  batches: batchModel,
  batchLines: batchLineModel,
  webhooks: webhookModel,
  webhookEvents: webhookEventModel,
  webhookDeliveries: webhookDeliveryModel,
  complianceJobs: complianceJobModel,
  exportChunks: exportChunkModel,
  erasures: erasureModel,
};

/** For tests and scripts that look into the database: a repository takes its own models. */
export type Models = { [Name in keyof typeof COLLECTIONS]: ReturnType<(typeof COLLECTIONS)[Name]> };

export function createModels(connection: Connection): Models {
  const models = Object.entries(COLLECTIONS).map(([name, modelOf]) => [name, modelOf(connection)]);
  // Object.fromEntries forgets which name has which model.
  return Object.fromEntries(models) as Models;
}

/** Makes collections and indexes; safe to repeat and to run in several processes at once. */
export async function ensureIndexes(connection: Connection): Promise<void> {
  for (const modelOf of Object.values(COLLECTIONS)) {
    const { schema, collection } = modelOf(connection);
    // The driver has the same fields by another type.
    const indexes = schema.indexes().map(([key, options]) => ({ ...options, key })) as mongo.IndexDescription[];
    // One command makes all of a collection's indexes, and the collection.
    if (indexes.length > 0) await collection.createIndexes(indexes);
    else await modelOf(connection).createCollection();
  }
}

const NAMES_DATABASE = /^mongodb(?:\+srv)?:\/\/[^/?]+\/[^?\s]/;

/**
 * Uses its own connection, which may wait for indexes. Safe to repeat and to run in several processes at once. Waits
 * for a MongoDB that is away; rejects with one sentence when it cannot be used.
 */
export async function prepareDatabase(uri: string, log: Logger, onAway?: () => void): Promise<void> {
  if (!NAMES_DATABASE.test(uri))
    log.warn('MONGODB_URI names no database, so all data is in `test`; name one (mongodb://HOST:PORT/DATABASE).');
  await onceMongoIsThere(() => prepare(uri), { log, onAway });
}

async function prepare(uri: string): Promise<void> {
  const connection = await connectMongo(uri, { callTimeoutMs: INDEX_BUILD_MS });
  try {
    const fault = mongoServerFault(await connection.getClient().db().command({ hello: 1 }));
    if (fault !== undefined) throw new Error(fault);
    await ensureIndexes(connection);
  } finally {
    await connection.close();
  }
}
