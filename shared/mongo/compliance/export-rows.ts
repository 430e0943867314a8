import type { Connection, Model, QueryFilter } from 'mongoose';

import type { ComplianceSubject } from '../../contracts/compliance.ts';
import { overseenBy } from '../../contracts/space.ts';
import type { Space } from '../../contracts/space.ts';
import { accountModel } from '../accounts/account-repository.ts';
import { checkoutModel } from '../accounts/checkout-repository.ts';
import { ledgerModel } from '../accounts/ledger-repository.ts';
import type { LedgerRow } from '../accounts/ledger-repository.ts';
import { purchaseModel } from '../accounts/purchase-repository.ts';
import { usageRollUpModel } from '../accounts/usage-repository.ts';
import type { UsageRollUpRow } from '../accounts/usage-repository.ts';
import { batchLineModel } from '../batches/batch-lines.ts';
import { batchModel } from '../batches/batch-repository.ts';
import type { BatchLineRow } from '../batches/batch-lines.ts';
import { entityModel } from '../entities/entity-repository.ts';
import type { EntityRow } from '../entities/entity-repository.ts';
import { answerModel } from '../requests/answer-repository.ts';
import type { AnswerRow } from '../requests/answer-repository.ts';
import { requestIntentModel } from '../requests/request-intents.ts';
import type { RequestIntentRow } from '../requests/request-intents.ts';
import { refusalCountModel, requestLogModel } from '../requests/request-log.ts';
import { idempotencyModel } from '../requests/idempotency-repository.ts';
import type { IdempotencyRow } from '../requests/idempotency-repository.ts';
import { inSpace } from '../collection.ts';
import type { RowFilter } from '../collection.ts';
import { actsOn, auditModel } from '../tenants/audit-repository.ts';
import type { AuditRow } from '../tenants/audit-repository.ts';
import { keyModel } from '../tenants/key-repository.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';
import { webhookDeliveryModel, webhookEventModel } from '../webhooks/webhook-delivery-repository.ts';
import type { WebhookEventRow } from '../webhooks/webhook-delivery-repository.ts';
import { webhookModel } from '../webhooks/webhook-repository.ts';
import { complianceJobModel } from './compliance-job-repository.ts';
import type { ComplianceJobRow } from './compliance-job-repository.ts';

/** Rows as they are when read, a few at a time; the writer chooses the fields. */
export type ExportRows = ReturnType<typeof createExportRows>;

export type ExportSubject = Space & ComplianceSubject;

/** Some rows have megabytes. */
const ROWS_AT_ONCE = 10;

/** lean() of a generic model has a type that TypeScript cannot resolve to the row it is. */
function read<Row>(rows: Model<Row>, filter: RowFilter<Row>, order: Record<string, 1> = {}): AsyncIterable<Row> {
  const query = rows.find(filter as QueryFilter<Row>).sort(order);
  return query.lean().cursor({ batchSize: ROWS_AT_ONCE });
}

async function* none(): AsyncGenerator<never> {
  // Empty in test exports: profile and billing exist in live mode only.
}

/** Reads the rows that keys of the subject's mode see. */
export function createExportRows(connection: Connection, subject: ExportSubject) {
  const { tenantId, mode, entityId } = subject;
  const isLive = mode === 'live';
  const ofTenant = inSpace(subject);
  const ofEntity = { ...ofTenant, ...(entityId === undefined ? {} : { entityId }) };
  const byTime = { createdAt: 1 } as const;
  const acts = entityId === undefined ? {} : actsOn(entityId);
  const tenantItself = { _id: tenantId };

  return {
    /** Empty for an entity: these rows belong to none. */
    tenant: {
      tenants: () => (isLive ? read(tenantModel(connection), tenantItself) : none()),
      accounts: () => (isLive ? read(accountModel(connection), tenantItself) : none()),
      keys: () => read(keyModel(connection), inSpace(overseenBy(subject)), byTime),
      batches: () => read(batchModel(connection), ofTenant, byTime),
      webhooks: () => read(webhookModel(connection), ofTenant, byTime),
      webhookDeliveries: () => read(webhookDeliveryModel(connection), ofTenant),
      checkouts: () => (isLive ? read(checkoutModel(connection), { tenantId }, byTime) : none()),
      requests: () => read(requestLogModel(connection), ofTenant, byTime),
      refusals: () => read(refusalCountModel(connection), ofTenant, byTime),
      purchases: () => (isLive ? read(purchaseModel(connection), { tenantId }, byTime) : none()),
    },
    /** Without tombstones. */
    entities: (): AsyncIterable<EntityRow> =>
      read(entityModel(connection), { ...ofEntity, deletedAt: { $exists: false } }),
    answers: (): AsyncIterable<AnswerRow> => read(answerModel(connection), ofEntity),
    /** Those that may run again. */
    failedRequests: (): AsyncIterable<RequestIntentRow> =>
      read(requestIntentModel(connection), { ...ofEntity, failedAt: { $exists: true } }),
    batchLines: (): AsyncIterable<BatchLineRow> => read(batchLineModel(connection), ofEntity),
    idempotency: (): AsyncIterable<IdempotencyRow> => read(idempotencyModel(connection), ofEntity),
    webhookEvents: (): AsyncIterable<WebhookEventRow> => read(webhookEventModel(connection), ofEntity),
    ledger: (): AsyncIterable<LedgerRow> => read(ledgerModel(connection), ofEntity, byTime),
    usage: (): AsyncIterable<UsageRollUpRow> =>
      read(usageRollUpModel(connection), { ...ofEntity, width: '1d', scope: 'entity' }),
    audit: (): AsyncIterable<AuditRow> => read(auditModel(connection), { ...ofTenant, ...acts }, byTime),
    complianceJobs: (): AsyncIterable<ComplianceJobRow> => read(complianceJobModel(connection), ofEntity),
  };
}
