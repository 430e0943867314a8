import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';

import type { Request } from 'express';

import { CHAT_FIELDS, CHAT_LIMITS } from '../../shared/contracts/chat-request.ts';
import type { ChatRequest } from '../../shared/contracts/chat-request.ts';
import type { AnswerStorage, ChatRoute } from '../../shared/contracts/jobs.ts';
import type { Space } from '../../shared/contracts/space.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';

/** docs/spec.md#idempotency. */
const KEY_LENGTH_MAX = 255;

/** The `Idempotency-Key` of a call, undefined where there is none. Throws `invalid_request` for a bad one. */
export function idempotencyKeyOf(req: Request): string | undefined {
  const key = req.get('Idempotency-Key');
  if (key === undefined) return undefined;
  if (key.length >= 1 && key.length <= KEY_LENGTH_MAX) return key;
  throw new ServiceError('invalid_request', `The Idempotency-Key must have 1 to ${KEY_LENGTH_MAX} characters.`, {
    param: 'Idempotency-Key',
  });
}

/**
 * The number of this try, from 0, as OpenAI's clients say it (`X-Stainless-Retry-Count`); undefined where nobody does.
 * Any other value is ignored without an error, because the client's user has not written the header.
 */
export function tryOf(req: Request): number | undefined {
  const count = req.get('X-Stainless-Retry-Count') ?? '';
  return /^\d{1,3}$/.test(count) ? Number(count) : undefined;
}

function hash(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

/** A piece of this many units takes some 10 ms. */
const PIECE_UNITS = 1024 * 1024;

/** Hashes the JSON of a body like `hash`, in steps between which other requests run. */
async function fingerprintOf(body: object): Promise<string> {
  const text = JSON.stringify(body);
  const hashing = createHash('sha256').update('["');
  for (let from = 0, to = 0; from < text.length; from = to) {
    if (from > 0) await nextTurn();
    to = from + PIECE_UNITS;
    // JSON writes half of a surrogate pair in another way than the pair.
    if (/[\uD800-\uDBFF]/.test(text.charAt(to - 1))) to += 1;
    hashing.update(JSON.stringify(text.slice(from, to)).slice(1, -1));
  }
  return hashing.update('"]').digest('base64url');
}

/** The name of a key in Redis; it does not depend on the body. */
export function idempotencyNameOf({ tenantId, mode }: Space, family: string, key: string): string {
  return hash(tenantId, mode, family, key);
}

/**
 * The name of a key and a body in Redis. Keys count per tenant, mode and route family; the chat routes and the
 * OpenAI-compatible one are one family, so a call may join from any of them (`comparable`).
 */
export async function idempotencyOf(
  space: Space,
  family: string,
  key: string,
  body: object,
): Promise<{ name: string; fingerprint: string }> {
  return { name: idempotencyNameOf(space, family, key), fingerprint: await fingerprintOf(body) };
}

/** The name in Redis of a call whose client tries again by itself: equal calls of one API key have one name. */
export async function attemptOf(
  { tenantId, mode, keyId }: Principal,
  endpoint: ChatRoute,
  request: ChatRequest,
): Promise<{ name: string; fingerprint: string }> {
  const fingerprint = await fingerprintOf(comparable(request));
  return { name: hash(tenantId, mode, keyId, endpoint, fingerprint), fingerprint };
}

/**
 * The fields of a chat request in the order of the list, by whichever route it came, for its fingerprint. Neither a
 * fitted `maxTokens` nor its default makes it another one.
 */
export function comparable(request: ChatRequest): object {
  const fields = CHAT_FIELDS.map(([name]) => [name, request[name]] as const);
  const { schema, passed = {}, task } = request;
  const unbounded = request.isUnbounded === true ? { maxTokens: CHAT_LIMITS.maxTokensDefault } : {};
  return { ...Object.fromEntries(fields), ...unbounded, schema, passed, ...(task === undefined ? {} : { task }) };
}

/** Redis keeps an answer for this long after its end, unless the tenant has set a shorter time. Milliseconds. */
export interface RetentionSettings {
  ordinaryMs: number;
  /** The answer of a request whose caller may come back for it. */
  storedAnswerMs: number;
}

/** Times count from the end of the request; its body is kept until then. */
export interface RequestRetention {
  retentionMs: number;
  answerStorage: AnswerStorage | undefined;
  /** MongoDB also keeps the body until the request's end (an intent), in case Redis loses its last second. */
  hasIntent: boolean;
}

/** True: no part of the tenant's conversations may outlive the answer (docs/spec.md#retention). */
export function keepsNothing({ retentionSeconds }: Principal): boolean {
  return retentionSeconds === 0;
}

/**
 * `callerMayReturn`: the call is asynchronous or has an Idempotency-Key. A tenant's own retention replaces the
 * service's times. Redis never keeps an answer for longer than the service's times; if the tenant's is longer, MongoDB
 * does.
 */
export function retentionOf(
  { retentionSeconds }: Pick<Principal, 'retentionSeconds'>,
  callerMayReturn: boolean,
  { ordinaryMs, storedAnswerMs }: RetentionSettings,
): RequestRetention {
  const serviceMs = callerMayReturn ? storedAnswerMs : ordinaryMs;
  const hasIntent = callerMayReturn;
  if (retentionSeconds === undefined)
    return { retentionMs: serviceMs, answerStorage: callerMayReturn ? {} : undefined, hasIntent };
  const ownMs = retentionSeconds * 1000;
  if (ownMs === 0) return { retentionMs: 0, answerStorage: undefined, hasIntent: false };
  if (ownMs <= ordinaryMs)
    return { retentionMs: ownMs, answerStorage: callerMayReturn ? { redisOnly: true } : undefined, hasIntent };
  // If the caller may not return, Redis keeps the answer for its ordinary time, because the tenant's own is longer.
  return { retentionMs: Math.min(ownMs, serviceMs), answerStorage: { storedMs: ownMs }, hasIntent };
}

/** `Prefer: respond-async` (RFC 7240): the caller does not wait. */
export function wantsAsync(req: Request): boolean {
  return (req.get('Prefer') ?? '').split(',').some((preference) => /^\s*respond-async\s*(;|$)/i.test(preference));
}
