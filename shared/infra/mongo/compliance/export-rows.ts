import type { Model, QueryFilter } from 'mongoose';

import type { ComplianceSubject } from '../../../contracts/compliance.ts';
import { actsOn } from '../tenants/audit-filter.ts';
import type { BatchLineRow, BatchRow } from '../batches/batch-rows.ts';
import type { CheckoutRow, PurchaseRow } from '../accounts/billing-rows.ts';
import type { ComplianceJobRow } from './compliance-rows.ts';
import type { Models } from '../models.ts';
import type {
  AccountRow,
  AnswerRow,
  AuditRow,
  EntityRow,
  IdempotencyRow,
  KeyRow,
  LedgerRow,
  TenantRow,
  UsageRollUpRow,
} from '../rows.ts';
import type { WebhookDeliveryRow, WebhookEventRow, WebhookRow } from '../webhooks/webhook-rows.ts';

/** Rows as they are stored, a few at a time, as they are when they are read. Who writes them out chooses the fields. */
export interface ExportRows {
  /** What belongs to the tenant and to no entity: empty for an entity. */
  tenant: {
    tenants(): AsyncIterable<TenantRow>;
    accounts(): AsyncIterable<AccountRow>;
    keys(): AsyncIterable<KeyRow>;
    batches(): AsyncIterable<BatchRow>;
    webhooks(): AsyncIterable<WebhookRow>;
    webhookDeliveries(): AsyncIterable<WebhookDeliveryRow>;
    checkouts(): AsyncIterable<CheckoutRow>;
    purchases(): AsyncIterable<PurchaseRow>;
  };
  /** Without tombstones. */
  entities(): AsyncIterable<EntityRow>;
  answers(): AsyncIterable<AnswerRow>;
  batchLines(): AsyncIterable<BatchLineRow>;
  idempotency(): AsyncIterable<IdempotencyRow>;
  webhookEvents(): AsyncIterable<WebhookEventRow>;
  ledger(): AsyncIterable<LedgerRow>;
  /** Sums by day. */
  usage(): AsyncIterable<UsageRollUpRow>;
  audit(): AsyncIterable<AuditRow>;
  complianceJobs(): AsyncIterable<ComplianceJobRow>;
}

/** Some rows have megabytes. */
const ROWS_AT_ONCE = 10;

/** lean() of a generic model has a type that TypeScript cannot resolve to the row it is. */
function read<Row>(rows: Model<Row>, filter: object, order: Record<string, 1> = {}): AsyncIterable<Row> {
  const query = rows.find(filter as QueryFilter<Row>).sort(order);
  return query.lean().cursor({ batchSize: ROWS_AT_ONCE });
}

export function createExportRows(models: Models, { tenantId, entityId }: ComplianceSubject): ExportRows {
  const ofTenant = { tenantId };
  const ofEntity = { tenantId, ...(entityId === undefined ? {} : { entityId }) };
  const byTime = { createdAt: 1 } as const;
  const acts = entityId === undefined ? {} : actsOn(entityId);
  const tenantItself = { _id: tenantId };

  return {
    tenant: {
      tenants: () => read(models.tenants, tenantItself),
      accounts: () => read(models.accounts, tenantItself),
      keys: () => read(models.keys, ofTenant, byTime),
      batches: () => read(models.batches, ofTenant, byTime),
      webhooks: () => read(models.webhooks, ofTenant, byTime),
      webhookDeliveries: () => read(models.webhookDeliveries, ofTenant),
      checkouts: () => read(models.checkouts, ofTenant, byTime),
      purchases: () => read(models.purchases, ofTenant, byTime),
    },
    entities: () => read(models.entities, { ...ofEntity, deletedAt: { $exists: false } }),
    answers: () => read(models.answers, ofEntity),
    batchLines: () => read(models.batchLines, ofEntity),
    idempotency: () => read(models.idempotency, ofEntity),
    webhookEvents: () => read(models.webhookEvents, ofEntity),
    ledger: () => read(models.ledger, ofEntity, byTime),
    usage: () => read(models.usageRollUps, { ...ofEntity, width: '1d', scope: 'entity' }),
    audit: () => read(models.audit, { ...ofTenant, ...acts }, byTime),
    complianceJobs: () => read(models.complianceJobs, ofEntity),
  };
}
