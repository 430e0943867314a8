import Joi from 'joi';

import { ROLES, TIERS } from './chat-request.ts';
import type { ChatRequest } from './chat-request.ts';
import { ENDPOINTS } from './jobs.ts';
import { KEY_MODES } from './space.ts';
import type { RequestEnvelope } from './jobs.ts';

/** What was stored does not have the shape that this version of the code reads. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

const text = Joi.string().allow('');
const required = text.required();
const count = Joi.number().required();
const flag = Joi.boolean().required();
const ROLE_NAMES: ReadonlySet<unknown> = new Set(ROLES);

/** By hand: 100 messages cost nothing that can be measured beside `JSON.parse`; the rest costs joi 20 µs. */
const checkMessages: Joi.CustomValidator<unknown[]> = (messages, helpers) => {
  for (const message of messages) {
    if (typeof message !== 'object' || message === null) return helpers.error('any.invalid');
    const { role, content } = message as Partial<Record<'role' | 'content', unknown>>;
    if (!ROLE_NAMES.has(role) || typeof content !== 'string') return helpers.error('any.invalid');
  }
  return messages;
};

/** Limits are not asked for again: the ingress has, and they may have changed since. Newer code may store more. */
const requestSchema = Joi.object({
  messages: Joi.array().custom(checkMessages).required(),
  model: Joi.valid(...TIERS),
  maxTokens: count,
  entityId: text,
  subject: text,
  grade: text,
  metadataJson: text,
  jsonMode: flag,
  sampling: Joi.object().unknown(true),
}).unknown(true);

const storedRequest = requestSchema.prefs({ convert: false });

const storedEnvelope = Joi.object({
  requestId: required,
  tenantId: required,
  keyId: required,
  mode: Joi.valid(...KEY_MODES).required(),
  endpoint: Joi.valid(...ENDPOINTS).required(),
  tier: Joi.valid(...TIERS).required(),
  stream: flag,
  acceptedAt: count,
  replayedAt: Joi.number(),
  retentionMs: count,
  kept: Joi.object({
    storedMs: Joi.number(),
    redisOnly: Joi.boolean(),
    idempotency: Joi.object({ name: required, fingerprint: required }).unknown(true),
  }).unknown(true),
  tenant: Joi.object({ subject: text, grade: text, moderation: Joi.object().unknown(true) })
    .unknown(true)
    .required(),
  request: requestSchema.required(),
})
  .unknown(true)
  .prefs({ convert: false });

/** Names the field, never its value: stored text is the caller's. */
function read(schema: Joi.Schema, json: string, what: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new UnreadableError(`${what} is not JSON.`);
  }
  const { error } = schema.validate(value);
  const path = error?.details[0]?.path.join('.');
  if (error !== undefined) throw new UnreadableError(`${what} has no readable \`${path ?? ''}\`.`);
  return value;
}

/** The body of a request, as the ingress stored it. Throws an UnreadableError. */
export function parseEnvelope(json: string): RequestEnvelope {
  // The schema has checked it.
  return read(storedEnvelope, json, 'The body of the request') as RequestEnvelope;
}

/** The request of a batch's line. Throws an UnreadableError. */
export function parseStoredRequest(json: string): ChatRequest {
  // The schema has checked it.
  return read(storedRequest, json, 'The line') as ChatRequest;
}
