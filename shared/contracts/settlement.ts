import Joi from 'joi';

import type { Tier } from './chat-request.ts';
import type { FinishReason } from './events.ts';
import type { Endpoint } from './jobs.ts';
import type { KeyMode } from './space.ts';

/** What a finished request owes the book: one outbox entry, at most one ledger entry. */
export interface SettlementRecord {
  requestId: string;
  tenantId: string;
  keyId: string;
  mode: KeyMode;
  tier: Tier;
  endpoint: Endpoint;
  entityId?: string;
  provider: string;
  model: string;
  promptTokens: number;
  completionTokens: number;
  estimated: boolean;
  /** Micro-credits; 0 for test keys (docs/spec/interface.md section 5, rule 3). */
  costMicro: number;
  finishReason: FinishReason;
  /** Milliseconds since the epoch. */
  acceptedAt: number;
  finishedAt: number;
}

const text = Joi.string().required();
const anyText = Joi.string().allow('').required();
const count = Joi.number().integer().min(0).required();

/**
 * What a record says is booked as money: nothing is converted or guessed. It can be older or newer than this code, so a
 * field more, or a tier or finish reason that is not known here, is no fault.
 */
const settlementSchema = Joi.object({
  requestId: text.pattern(/^req_/),
  tenantId: text,
  keyId: text,
  mode: text.valid('live', 'test'),
  tier: text,
  endpoint: text,
  entityId: Joi.string(),
  // Empty where a worker died before it could say whom it asked.
  provider: anyText,
  model: anyText,
  promptTokens: count,
  completionTokens: count,
  estimated: Joi.boolean().required(),
  costMicro: count,
  finishReason: text,
  acceptedAt: count,
  finishedAt: count,
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
  // The schema has just shown that it is one.
  return error === undefined ? (value as SettlementRecord) : undefined;
}
