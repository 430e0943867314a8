import Joi from 'joi';

import type { ErrorCode } from '../errors/codes.ts';
import type { Tier } from './chat-request.ts';
import type { FinishReason, Usage } from './events.ts';
import type { ChatRoute } from './jobs.ts';
import type { KeyMode } from './space.ts';

/** Webhooks hear of such an end although nothing is booked: a failure, or flagged content. */
export interface FinishedNotice {
  requestId: string;
  tenantId: string;
  keyId: string;
  mode: KeyMode;
  tier: Tier;
  endpoint: ChatRoute;
  entityId?: string;
  /** Place in the order of acceptance. */
  seq: number;
  finishReason: FinishReason;
  usage: Usage;
  errorCode: ErrorCode | null;
  flagged?: { side: 'input' | 'output'; categories: string[] };
  /** Milliseconds since the epoch. */
  finishedAt: number;
}

const text = Joi.string().required();

/** A notice can be older or newer than this code, so unknown fields are allowed. */
const noticeSchema = Joi.object({
  requestId: text,
  tenantId: text,
  keyId: text,
  mode: text,
  tier: text,
  endpoint: text,
  entityId: Joi.string(),
  seq: Joi.number().required(),
  finishReason: text,
  usage: Joi.object({ promptTokens: Joi.number().required(), completionTokens: Joi.number().required() })
    .unknown()
    .required(),
  errorCode: Joi.string().allow(null).required(),
  flagged: Joi.object({ side: text.valid('input', 'output'), categories: Joi.array().items(Joi.string()).required() }),
  finishedAt: Joi.number().required(),
})
  .unknown()
  .required();

/** Undefined: the text is no notice. */
export function parseNotice(json: string): FinishedNotice | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  // The schema has just checked it.
  return noticeSchema.validate(value, { convert: false }).error === undefined ? (value as FinishedNotice) : undefined;
}
