import { Schema } from 'mongoose';
import type { Connection, Model } from 'mongoose';

import type { BreakerSettings } from '../../domain/routing/breaker.ts';
import { createBatchModels } from './batches/batch-models.ts';
import type { BatchModels } from './batches/batch-models.ts';
import { createBillingModels } from './accounts/billing-models.ts';
import type { BillingModels } from './accounts/billing-models.ts';
import { createLedgerCheckpointModels } from './accounts/ledger-checkpoints.ts';
import type { LedgerCheckpointModels } from './accounts/ledger-checkpoints.ts';
import { createComplianceModels } from './compliance/compliance-models.ts';
import type { ComplianceModels } from './compliance/compliance-models.ts';
import type {
  TenantRow,
  AccountRow,
  KeyRow,
  ProviderRow,
  TargetRow,
  TierRow,
  TierVersionRow,
  LedgerRow,
  StoredMessage,
  EntityRow,
  IdempotencyRow,
  UsageRollUpRow,
  AnswerRow,
} from './rows.ts';
import { count, number, options, required, text } from './schema-parts.ts';
import { createWebhookModels } from './webhooks/webhook-models.ts';
import type { WebhookModels } from './webhooks/webhook-models.ts';

const tenantSchema = new Schema<TenantRow>(
  {
    _id: required,
    name: required,
    status: required,
    shard: count,
    defaultModel: required,
    rpm: count,
    tpm: count,
    dailyRequests: count,
    chatRpm: count,
    streamRpm: count,
    monthlyTokenBudget: { type: Number, default: null },
    testDailyTokens: count,
    subject: text,
    grade: text,
    onDisconnect: required,
    moderation: { type: Schema.Types.Mixed },
    keysIssued: number,
    webhooksMade: number,
    createdAt: count,
  },
  options,
);

const accountSchema = new Schema<AccountRow>(
  {
    _id: required,
    balanceMicro: count,
    version: count,
    tokensByMonth: { type: Schema.Types.Mixed, default: {} },
    lastTopUp: { type: new Schema({ transactionId: required, balanceMicro: count }, { _id: false }), required: false },
    lastEntryAt: number,
  },
  options,
);

const keySchema = new Schema<KeyRow>(
  {
    _id: required,
    tenantId: required,
    hash: required,
    previous: { type: [new Schema({ hash: required, expiresAt: count }, { _id: false })], default: undefined },
    redactedValue: required,
    name: { type: String },
    mode: required,
    scopes: [String],
    status: required,
    expiresAt: number,
    rpm: number,
    tpm: number,
    dailyRequests: number,
    createdAt: count,
    lastUsedAt: number,
  },
  options,
)
  .index({ hash: 1 }, { unique: true })
  .index({ 'previous.hash': 1 })
  .index({ tenantId: 1, createdAt: -1 });

const breakerSettings = new Schema<BreakerSettings>(
  { windowMs: count, minAttempts: count, failureRatio: count, openMs: count, maxOpenMs: count },
  { _id: false },
);
const providerSchema = new Schema<ProviderRow>(
  {
    _id: required,
    kind: required,
    baseUrl: required,
    encryptedApiKey: text,
    timeoutMs: count,
    firstTokenTimeoutMs: count,
    maxRetries: count,
    breaker: { type: breakerSettings, required: false },
    createdAt: count,
    updatedAt: count,
  },
  options,
);

const target = new Schema<TargetRow>(
  { provider: required, model: required, weight: count, priority: count, contextWindow: count },
  { _id: false },
);
const tierFields = {
  version: count,
  promptRateMicro: count,
  completionRateMicro: count,
  targets: [target],
  updatedAt: count,
};
const tierSchema = new Schema<TierRow>({ _id: required, ...tierFields }, options);
const tierVersionSchema = new Schema<TierVersionRow>({ _id: required, tier: required, ...tierFields }, options).index(
  { tier: 1, version: -1 },
  { unique: true },
);

const ledgerSchema = new Schema<LedgerRow>(
  {
    _id: required,
    tenantId: required,
    type: required,
    amountMicro: count,
    balanceAfterMicro: count,
    createdAt: count,
    reason: text,
    purchaseId: text,
    requestId: text,
    keyId: text,
    mode: text,
    endpoint: text,
    tier: text,
    entityId: text,
    provider: text,
    model: text,
    promptTokens: number,
    completionTokens: number,
    estimated: { type: Boolean },
    finishReason: text,
    acceptedAt: number,
  },
  options,
)
  .index({ tenantId: 1, createdAt: -1 })
  .index({ tenantId: 1, acceptedAt: 1 })
  .index({ tenantId: 1, entityId: 1 }, { partialFilterExpression: { entityId: { $exists: true } } });

const usageRollUpSchema = new Schema<UsageRollUpRow>(
  {
    _id: required,
    tenantId: required,
    width: required,
    startMs: count,
    keyId: required,
    tier: required,
    mode: required,
    endpoint: required,
    scope: required,
    entityId: { type: String },
    requests: count,
    promptTokens: count,
    completionTokens: count,
    costMicro: count,
    estimatedRequests: count,
    expiresAt: { type: Date },
  },
  options,
)
  .index({ tenantId: 1, width: 1, scope: 1, startMs: 1 })
  .index({ tenantId: 1, width: 1, entityId: 1, startMs: 1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

const answerSchema = new Schema<AnswerRow>(
  {
    _id: required,
    tenantId: required,
    entityId: text,
    idempotencyName: text,
    fingerprint: text,
    fields: { type: Schema.Types.Mixed, required: true },
    entries: [{ _id: false, lastSeq: count, payload: { type: String } }],
    expiresAt: { type: Date, required: true },
  },
  options,
)
  .index({ tenantId: 1, idempotencyName: 1 })
  .index({ tenantId: 1, entityId: 1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

const storedMessage = new Schema<StoredMessage>(
  { role: required, content: required, requestId: required, seq: count, attempt: count },
  { _id: false },
);
const entitySchema = new Schema<EntityRow>(
  {
    tenantId: required,
    entityId: required,
    subject: text,
    grade: text,
    name: text,
    metadataJson: text,
    messages: [storedMessage],
    createdAt: count,
    forgottenSeq: number,
    deletedAt: number,
    expiresAt: { type: Date },
  },
  options,
)
  .index({ tenantId: 1, entityId: 1 }, { unique: true })
  .index({ tenantId: 1, createdAt: -1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

const idempotencySchema = new Schema<IdempotencyRow>(
  {
    _id: required,
    tenantId: required,
    owner: required,
    firstOwner: text,
    fingerprint: required,
    claimedAt: count,
    status: number,
    bodyJson: text,
    location: text,
    entityId: text,
    expiresAt: { type: Date, required: true },
  },
  options,
)
  .index({ tenantId: 1, entityId: 1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

export interface Models extends BatchModels, BillingModels, ComplianceModels, LedgerCheckpointModels, WebhookModels {
  tenants: Model<TenantRow>;
  accounts: Model<AccountRow>;
  keys: Model<KeyRow>;
  providers: Model<ProviderRow>;
  tiers: Model<TierRow>;
  tierVersions: Model<TierVersionRow>;
  ledger: Model<LedgerRow>;
  usageRollUps: Model<UsageRollUpRow>;
  answers: Model<AnswerRow>;
  entities: Model<EntityRow>;
  idempotency: Model<IdempotencyRow>;
}

export function createModels(connection: Connection): Models {
  return {
    tenants: connection.model<TenantRow>('Tenant', tenantSchema, 'tenants'),
    accounts: connection.model<AccountRow>('Account', accountSchema, 'accounts'),
    keys: connection.model<KeyRow>('Key', keySchema, 'keys'),
    providers: connection.model<ProviderRow>('Provider', providerSchema, 'providers'),
    tiers: connection.model<TierRow>('Tier', tierSchema, 'tiers'),
    tierVersions: connection.model<TierVersionRow>('TierVersion', tierVersionSchema, 'tier_versions'),
    ledger: connection.model<LedgerRow>('Ledger', ledgerSchema, 'ledger'),
    usageRollUps: connection.model<UsageRollUpRow>('UsageRollUp', usageRollUpSchema, 'usage_rollups'),
    answers: connection.model<AnswerRow>('Answer', answerSchema, 'answers'),
    entities: connection.model<EntityRow>('Entity', entitySchema, 'entities'),
    idempotency: connection.model<IdempotencyRow>('Idempotency', idempotencySchema, 'idempotency'),
    ...createWebhookModels(connection),
    ...createBillingModels(connection),
    ...createLedgerCheckpointModels(connection),
    ...createBatchModels(connection),
    ...createComplianceModels(connection),
  };
}

/** Makes collections and indexes; safe to repeat and to run in several processes at once. */
export async function ensureIndexes(models: Models): Promise<void> {
  for (const model of Object.values(models) as Model<unknown>[]) {
    await model.createCollection();
    await model.ensureIndexes();
  }
}
