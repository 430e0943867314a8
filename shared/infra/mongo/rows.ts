import type { Role, Tier } from '../../contracts/chat-request.ts';
import type { FinishReason } from '../../contracts/events.ts';
import type { Endpoint, KeyMode } from '../../contracts/jobs.ts';
import type { ModerationSettings } from '../../contracts/moderation-settings.ts';
import type { BreakerSettings } from '../../domain/routing/breaker.ts';
import type { ProviderKind } from '../../domain/routing/routing.ts';
import type { RollUpKey, UsageCounts } from '../../domain/usage/roll-up.ts';

/** Rows as they are stored. Ids are the public ones; times are milliseconds since the epoch. */
export interface TenantRow {
  _id: string;
  name: string;
  status: 'active' | 'suspended';
  /** The shard of Redis that holds everything of this tenant that is in flight; chosen once. */
  shard: number;
  defaultModel: Tier;
  rpm: number;
  tpm: number;
  dailyRequests: number;
  chatRpm: number;
  streamRpm: number;
  /** Tokens a calendar month (UTC); null: no budget. */
  monthlyTokenBudget: number | null;
  /** Tokens a day that all test keys of the tenant share. */
  testDailyTokens: number;
  subject?: string;
  grade?: string;
  onDisconnect: 'cancel' | 'finish';
  moderation?: ModerationSettings;
  /** Rises with every new or changed key; writing it makes concurrent changes of the tenant's keys take turns. */
  keysIssued?: number;
  /** The same for webhooks. */
  webhooksMade?: number;
  createdAt: number;
}

export interface AccountRow {
  /** The tenant's id. */
  _id: string;
  balanceMicro: number;
  /** Rises by one with every change of the balance. */
  version: number;
  /** Billed tokens by month, `202611`. */
  tokensByMonth: Record<string, number>;
  /** The latest grant or purchase, and the balance it left. Missing in rows of versions without webhooks. */
  lastTopUp?: { transactionId: string; balanceMicro: number };
  /** Time of the latest ledger entry: the next one's is later. */
  lastEntryAt?: number;
}

/** A value that a rotated key had before. */
export interface PreviousKeyValue {
  hash: string;
  /** It is accepted until then. */
  expiresAt: number;
}

export interface KeyRow {
  _id: string;
  tenantId: string;
  /** SHA-256 of the key, hex. The key itself is stored nowhere. */
  hash: string;
  /** Earlier values that are still accepted, or were not long ago. */
  previous?: PreviousKeyValue[];
  redactedValue: string;
  name: string;
  mode: KeyMode;
  scopes: string[];
  status: 'active' | 'revoked';
  expiresAt?: number;
  rpm?: number;
  tpm?: number;
  dailyRequests?: number;
  createdAt: number;
  lastUsedAt?: number;
}

export interface ProviderRow {
  /** The provider's name. */
  _id: string;
  kind: ProviderKind;
  baseUrl: string;
  /** AES-256-GCM, see shared/infra/mongo/credentials.ts. */
  encryptedApiKey?: string;
  timeoutMs: number;
  firstTokenTimeoutMs: number;
  maxRetries: number;
  /** Missing in rows of versions without breakers. */
  breaker?: BreakerSettings;
  createdAt: number;
  updatedAt: number;
}

export interface TargetRow {
  provider: string;
  model: string;
  weight: number;
  priority: number;
  contextWindow: number;
}

export interface TierRow {
  _id: Tier;
  version: number;
  /** Micro-credits a token. */
  promptRateMicro: number;
  completionRateMicro: number;
  targets: TargetRow[];
  updatedAt: number;
}

/** Every version a tier ever had, for rollback; `_id` is `<tier>:<version>`. */
export interface TierVersionRow extends Omit<TierRow, '_id'> {
  _id: string;
  tier: Tier;
}

export interface LedgerRow {
  /** `txn_…`; for usage `txn_` + the request's own 24 characters, so one request cannot have two. */
  _id: string;
  tenantId: string;
  type: 'purchase' | 'grant' | 'usage' | 'adjustment';
  /** Signed micro-credits: usage is negative or zero. */
  amountMicro: number;
  /** The account's balance with this entry and all before it. */
  balanceAfterMicro: number;
  /** Rises with every booking of a tenant (move-account.ts). */
  createdAt: number;
  reason?: string;
  /** The purchase that was paid, or paid back. */
  purchaseId?: string;
  requestId?: string;
  keyId?: string;
  mode?: KeyMode;
  endpoint?: Endpoint;
  tier?: Tier;
  entityId?: string;
  provider?: string;
  model?: string;
  promptTokens?: number;
  completionTokens?: number;
  estimated?: boolean;
  finishReason?: FinishReason;
  acceptedAt?: number;
}

/** The usage of one bucket of time by key, tier, mode and endpoint; `_id` names all of them (rollUpIdOf). */
export interface UsageRollUpRow extends RollUpKey, UsageCounts {
  _id: string;
  /** Rows of a minute only: MongoDB deletes them then. */
  expiresAt?: Date;
}

/** An answer that is kept for a day; `_id` is its request's id. */
export interface AnswerRow {
  _id: string;
  tenantId: string;
  entityId?: string;
  idempotencyName?: string;
  fingerprint?: string;
  fields: Record<string, string>;
  entries: { lastSeq: number; payload: string }[];
  /** MongoDB deletes it then. */
  expiresAt: Date;
}

export interface StoredMessage {
  role: Role;
  content: string;
  /** The request that stored it, and its place in the order of acceptance. */
  requestId: string;
  seq: number;
  /** The attempt at that request which stored it. */
  attempt: number;
}

export interface EntityRow {
  tenantId: string;
  entityId: string;
  subject?: string;
  grade?: string;
  name?: string;
  metadataJson?: string;
  messages: StoredMessage[];
  createdAt: number;
  /** Set by the latest deletion: requests that were accepted up to here store nothing (their `seq`). */
  forgottenSeq?: number;
  /** Present on a tombstone: the entity is not there. */
  deletedAt?: number;
  /** MongoDB deletes a tombstone after this time. */
  expiresAt?: Date;
}

/** What an `Idempotency-Key` outside the chat routes stands for. */
export interface IdempotencyRow {
  /** Hash of tenant, mode, route family and key. */
  _id: string;
  tenantId: string;
  /** The request that runs or ran under the key. */
  owner: string;
  /** The first request under the key, which may have left its effect: what a later run creates has the same ids. */
  firstOwner?: string;
  /** Hash of path and body. */
  fingerprint: string;
  claimedAt: number;
  /** Absent while the request runs. */
  status?: number;
  /** The answer without anything that is shown once. */
  bodyJson?: string;
  location?: string;
  /** The entity that the answer is about, so that its deletion finds it. */
  entityId?: string;
  /** MongoDB deletes the row after this time. */
  expiresAt: Date;
}

/** One line of a tenant's audit log; never changed and never deleted. */
export interface AuditRow {
  _id: string;
  tenantId: string;
  createdAt: number;
  /** An API key's id, or `administrator`. */
  actor: string;
  action: string;
  /** The id of what was acted on. */
  target: string;
  requestId: string;
  /** Holds no secret and no conversation text. */
  details: Record<string, unknown>;
}
