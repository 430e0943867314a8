import { createHash } from 'node:crypto';

import type { Request } from 'express';

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

/**
 * What stands for a key and a body in Redis. Keys count per tenant, mode and route family; the two chat routes and the
 * OpenAI-compatible one are one family, so a call may join from any of them.
 */
export function idempotencyOf(
  { tenantId, mode }: Space,
  family: string,
  key: string,
  body: object,
): { name: string; fingerprint: string } {
  return { name: hash(tenantId, mode, family, key), fingerprint: hash(JSON.stringify(body)) };
}
