import Joi from 'joi';

import { ROLES, TIERS } from './chat-request.ts';
import type { ChatRequest } from './chat-request.ts';
import { CHAT_ROUTES } from './jobs.ts';
import type { IdempotencyName, RequestEnvelope } from './jobs.ts';
import { isRecord } from './parse.ts';
import { KEY_MODES } from './space.ts';
import type { KeyMode } from './space.ts';

/** Stored data does not have the shape that this version of the code reads. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

const text = Joi.string().allow('');
const required = text.required();
const count = Joi.number().required();
const flag = Joi.boolean().required();
const ROLE_NAMES: ReadonlySet<unknown> = new Set(ROLES);

/** Written by hand: for 100 messages the cost cannot be measured next to that of `JSON.parse`. */
function areMessages(messages: readonly unknown[]): boolean {
  for (const message of messages) {
    if (typeof message !== 'object' || message === null) return false;
    const { role, content } = message as Partial<Record<'role' | 'content', unknown>>;
    if (!ROLE_NAMES.has(role) || typeof content !== 'string') return false;
  }
  return true;
}

const checkMessages: Joi.CustomValidator<unknown[]> = (messages, helpers) =>
  areMessages(messages) ? messages : helpers.error('any.invalid');

/** Limits are not checked again: the ingress did so, and they may have changed. Newer code may store more fields. */
const requestSchema = Joi.object({
  messages: Joi.array().custom(checkMessages).required(),
  model: Joi.valid(...TIERS),
  maxTokens: count,
  fitsTokens: Joi.boolean(),
  entityId: text,
  subject: text,
  grade: text,
  metadataJson: text,
  jsonMode: flag,
  sampling: Joi.object().unknown(true),
}).unknown(true);

const storedRequest = requestSchema.prefs({ convert: false });

const storedName = Joi.object({ name: required, fingerprint: required }).unknown(true);

const storedEnvelope = Joi.object({
  requestId: required,
  tenantId: required,
  keyId: required,
  mode: Joi.valid(...KEY_MODES).required(),
  endpoint: Joi.valid(...CHAT_ROUTES).required(),
  tier: Joi.valid(...TIERS).required(),
  stream: flag,
  acceptedAt: count,
  replayedAt: Joi.number(),
  retentionMs: count,
  kept: Joi.object({ storedMs: Joi.number(), redisOnly: Joi.boolean(), idempotency: storedName }).unknown(true),
  idempotency: storedName,
  rates: Joi.object({ promptMicro: count, completionMicro: count }).unknown(true),
  tenant: Joi.object({ subject: text, grade: text, moderation: Joi.object().unknown(true) })
    .unknown(true)
    .required(),
  request: requestSchema.required(),
})
  .unknown(true)
  .prefs({ convert: false });

const CHAT_ROUTE_NAMES: ReadonlySet<unknown> = new Set(CHAT_ROUTES);
const TIER_NAMES: ReadonlySet<unknown> = new Set(TIERS);
const MODE_NAMES: ReadonlySet<unknown> = new Set(KEY_MODES);

const isObjectOrAbsent = (value: unknown) => value === undefined || isRecord(value);
const isTextOrAbsent = (value: unknown) => value === undefined || typeof value === 'string';
const isCount = (value: unknown) => typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER;

function isPlainRequest(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { messages, model, maxTokens, fitsTokens, entityId, subject, grade, metadataJson, jsonMode, sampling } = value;
  return (
    Array.isArray(messages) &&
    areMessages(messages) &&
    (model === undefined || TIER_NAMES.has(model)) &&
    isCount(maxTokens) &&
    (fitsTokens === undefined || typeof fitsTokens === 'boolean') &&
    isTextOrAbsent(entityId) &&
    isTextOrAbsent(subject) &&
    isTextOrAbsent(grade) &&
    isTextOrAbsent(metadataJson) &&
    typeof jsonMode === 'boolean' &&
    isObjectOrAbsent(sampling)
  );
}

function isPlainTenant(value: unknown): boolean {
  return (
    isRecord(value) &&
    isTextOrAbsent(value['subject']) &&
    isTextOrAbsent(value['grade']) &&
    isObjectOrAbsent(value['moderation'])
  );
}

/**
 * Whether a body is clearly valid, as nearly all are: the schema takes ten times as long and makes as much garbage as a
 * sixth of a whole request. Only the schema refuses, and it accepts whatever passes here (a property in
 * test/unit/shared/contracts).
 */
export function isPlainEnvelope(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { requestId, tenantId, keyId, mode, endpoint, tier, stream, acceptedAt, replayedAt, retentionMs } = value;
  return (
    typeof requestId === 'string' &&
    typeof tenantId === 'string' &&
    typeof keyId === 'string' &&
    MODE_NAMES.has(mode) &&
    CHAT_ROUTE_NAMES.has(endpoint) &&
    TIER_NAMES.has(tier) &&
    typeof stream === 'boolean' &&
    isCount(acceptedAt) &&
    (replayedAt === undefined || isCount(replayedAt)) &&
    isCount(retentionMs) &&
    // The schema has the rules for these fields.
    value['kept'] === undefined &&
    value['idempotency'] === undefined &&
    value['rates'] === undefined &&
    isPlainTenant(value['tenant']) &&
    isPlainRequest(value['request'])
  );
}

/** Decides about bodies that are not plain. */
export function isEnvelope(value: unknown): boolean {
  return storedEnvelope.validate(value).error === undefined;
}

/** Names the field, never its value: stored text is the caller's. */
function read(schema: Joi.Schema, json: string, what: string, isPlain: (value: unknown) => boolean): unknown {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new UnreadableError(`${what} is not JSON.`);
  }
  if (isPlain(value)) return value;
  const { error } = schema.validate(value);
  const path = error?.details[0]?.path.join('.');
  if (error !== undefined) throw new UnreadableError(`${what} has no readable \`${path ?? ''}\`.`);
  return value;
}

/** The body of a request, as the ingress stored it. Throws an UnreadableError. */
export function parseEnvelope(json: string): RequestEnvelope {
  // The schema has checked it.
  return read(storedEnvelope, json, 'The body of the request', isPlainEnvelope) as RequestEnvelope;
}

/** The request of a batch's line. Throws an UnreadableError. */
export function parseStoredRequest(json: string): ChatRequest {
  // The schema has checked it.
  return read(storedRequest, json, 'The line', isPlainRequest) as ChatRequest;
}

/**
 * An ended request as Redis has it: the fields of its record that a reader needs, and the entries of its stream. Once
 * restored, it reads the same, byte for byte.
 */
export interface EndedAnswer {
  requestId: string;
  tenantId: string;
  fields: Record<string, string>;
  /** Last sequence number and payload of each entry, in order (shared/contracts/events.ts). */
  entries: { lastSeq: number; payload: string }[];
}

/** An answer that may be asked for again for a day (docs/spec.md#retention). */
export interface StoredAnswer extends EndedAnswer {
  mode: KeyMode;
  entityId?: string;
  /** Undefined: the request was asynchronous, or its key does not remember it because it ended without an answer. */
  idempotency?: IdempotencyName;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** Answers asked for with an Idempotency-Key or asynchronously are stored for a day (docs/spec.md#retention). */
export const STORED_ANSWER_MS = 24 * 3_600_000;

/** Until when the answer stands for its Idempotency-Key, however long it is kept. Milliseconds since the epoch. */
export function namedUntil({ fields }: Pick<EndedAnswer, 'fields'>): number {
  return Number(fields['acceptedAt']) + STORED_ANSWER_MS;
}
