import Joi from 'joi';

import type { Tier } from './chat-request.ts';
import type { FinishReason } from './events.ts';
import type { ChatRoute } from './jobs.ts';
import type { KeyMode } from './space.ts';

/** What provider calls cost the operator, in billionths of a currency (ISO 4217, lower case). */
export interface Spend {
  currency: string;
  nano: number;
}

/** What a finished request owes the book: one outbox entry, at most one ledger entry. */
export interface SettlementRecord {
  requestId: string;
  tenantId: string;
  keyId: string;
  mode: KeyMode;
  tier: Tier;
  endpoint: ChatRoute;
  entityId?: string;
  provider: string;
  model: string;
  promptTokens: number;
  completionTokens: number;
  estimated: boolean;
  /** Micro-credits; 0 for test keys (docs/spec.md#test-keys). */
  costMicro: number;
  finishReason: FinishReason;
  /** Milliseconds since the epoch. */
  acceptedAt: number;
  finishedAt: number;
  /** Of all its provider calls. Absent: some target that was called has no cost. */
  spend?: Spend;
}

const text = Joi.string().required();
const anyText = Joi.string().allow('').required();
const count = Joi.number().integer().min(0).required();

/**
 * A record is booked as money, so nothing is converted or guessed. It can be older or newer than this code, so unknown
 * fields, tiers and finish reasons are allowed.
 */
const settlementSchema = Joi.object({
  requestId: text.pattern(/^req_/),
  tenantId: text,
  keyId: text,
  mode: text.valid('live', 'test'),
  tier: text,
  endpoint: text,
  entityId: Joi.string(),
  // Empty if a worker died before it could say which provider it called.
  provider: anyText,
  model: anyText,
  promptTokens: count,
  completionTokens: count,
  estimated: Joi.boolean().required(),
  costMicro: count,
  finishReason: text,
  acceptedAt: count,
  finishedAt: count,
  spend: Joi.object({ currency: text, nano: count }),
})
  .unknown()
  .required();

const TEXTS = ['requestId', 'tenantId', 'keyId', 'tier', 'endpoint', 'finishReason'] as const;
const COUNTS = ['promptTokens', 'completionTokens', 'costMicro', 'acceptedAt', 'finishedAt'] as const;

function isPlainSpend(value: unknown): boolean {
  if (value === undefined) return true;
  const { currency, nano } = (value ?? {}) as Partial<Record<keyof Spend, unknown>>;
  return typeof currency === 'string' && currency !== '' && Number.isSafeInteger(nano) && Number(nano) >= 0;
}

/**
 * Whether a value is clearly a valid record, as nearly all are: the schema takes five times as long. Only the schema
 * refuses, and it accepts whatever passes here (a property in test/unit/shared/contracts).
 */
export function isPlainSettlement(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  // Only looked at, field by field.
  const record = value as Record<string, unknown>;
  const isText = (name: string) => typeof record[name] === 'string' && record[name] !== '';
  return (
    TEXTS.every(isText) &&
    COUNTS.every((name) => Number.isSafeInteger(record[name]) && Number(record[name]) >= 0) &&
    String(record['requestId']).startsWith('req_') &&
    (record['mode'] === 'live' || record['mode'] === 'test') &&
    typeof record['provider'] === 'string' &&
    typeof record['model'] === 'string' &&
    typeof record['estimated'] === 'boolean' &&
    (record['entityId'] === undefined || isText('entityId')) &&
    isPlainSpend(record['spend'])
  );
}

/** Undefined: the text is no settlement record. */
export function parseSettlement(json: string): SettlementRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  const isRecord = isPlainSettlement(value) || isSettlement(value);
  // It has just been checked.
  return isRecord ? (value as SettlementRecord) : undefined;
}

/** Decides about values that are not plain records. */
export function isSettlement(value: unknown): boolean {
  return settlementSchema.validate(value, { convert: false }).error === undefined;
}
