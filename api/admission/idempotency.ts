import { createHash } from 'node:crypto';

import type { Request } from 'express';

import type { ChatRequest } from '../../shared/contracts/chat-request.ts';
import type { Space } from '../../shared/contracts/space.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';

/** docs/spec/contract.md section 3. */
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

function hash(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

const fingerprintOf = (body: object) => hash(JSON.stringify(body));

/** What stands for a key in Redis; it does not depend on the body. */
export function idempotencyNameOf({ tenantId, mode }: Space, family: string, key: string): string {
  return hash(tenantId, mode, family, key);
}

/**
 * What stands for a key and a body in Redis. Keys count per tenant, mode and route family; the two chat routes and the
 * OpenAI-compatible one are one family, so a call may join from any of them (`isOfRequest`).
 */
export function idempotencyOf(
  space: Space,
  family: string,
  key: string,
  body: object,
): { name: string; fingerprint: string } {
  return { name: idempotencyNameOf(space, family, key), fingerprint: fingerprintOf(body) };
}

/** Whether a fingerprint is of this request, by whichever chat route it came: each writes its fields in an order of its own. */
export function isOfRequest(fingerprint: string, request: ChatRequest): boolean {
  const { messages, maxTokens, jsonMode, sampling = {}, model, entityId, subject, grade, metadataJson } = request;
  const forms: object[] = [{ messages, maxTokens, jsonMode, sampling, model, metadataJson, entityId, subject, grade }];
  if (Object.keys(sampling).length === 0)
    forms.push({ messages, maxTokens, jsonMode, model, entityId, subject, grade, metadataJson });
  return forms.some((form) => fingerprintOf(form) === fingerprint);
}
