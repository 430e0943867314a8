import Joi from 'joi';

import type { Tier } from './chat-request.ts';
import type { FinishReason } from './events.ts';
import type { ErrorCode } from '../errors/codes.ts';
import type { ChatRoute, RequestEnvelope } from './jobs.ts';
import type { KeyMode } from './space.ts';

/** The operator's cost of provider calls, in billionths of a currency (ISO 4217, lower case). */
export interface Spend {
  currency: string;
  nano: number;
}

/**
 * Hears of a request that ended without a run: cancelled, taken back or expired while it waited, or lost. Without a code
 * it was cancelled. `isGuess`: its worker may know better. Never text, although an envelope has some.
 */
export type OnEarlyEnd = (
  request: Pick<RequestEnvelope, 'requestId' | 'tenantId' | 'keyId' | 'mode' | 'endpoint' | 'tier' | 'acceptedAt'>,
  how: { code?: ErrorCode | undefined; reason: string; isGuess?: true },
) => void;

/** The debt of a finished request to the ledger: one outbox entry, at most one ledger entry. */
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

/** Undefined: the text is no settlement record. */
export function parseSettlement(json: string): SettlementRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  const { error } = settlementSchema.validate(value, { convert: false });
  // It has just been checked.
  return error === undefined ? (value as SettlementRecord) : undefined;
}
