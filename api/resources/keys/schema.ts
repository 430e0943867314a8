import Joi from 'joi';

import { checkAgainst } from '../../../shared/contracts/parse.ts';
import type { Scope } from '../../../shared/domain/keys/api-key.ts';
import type { KeyChanges } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import { expiryOf, keyFields } from '../../admin/keys/schema.ts';
import { countSchema } from '../../admin/tenants/schema.ts';

/** A week (docs/spec/contract.md section 6). */
const GRACE_SECONDS_MAX = 604_800;

/** `PATCH /keys/{id}`. A key keeps its mode. */
export const keyChangesSchema = Joi.object({
  ...keyFields,
  expires_at: keyFields.expires_at.allow(null),
  rpm: keyFields.rpm.allow(null),
  tpm: keyFields.tpm.allow(null),
  daily_requests: keyFields.daily_requests.allow(null),
}).required();

/** `POST /keys/{id}/rotate`. */
export const rotationSchema = Joi.object({
  grace_seconds: countSchema(0, GRACE_SECONDS_MAX).description(
    'How long the value until now keeps working; 0, not at all, by default.',
  ),
}).required();

interface KeyChangesBody {
  name?: string;
  scopes?: Scope[];
  expires_at?: number | null;
  expires_in_seconds?: number;
  rpm?: number | null;
  tpm?: number | null;
  daily_requests?: number | null;
}

/** null takes a setting away: no expiry, the tenant's limits. Throws `invalid_request`. */
export function parseKeyChanges(input: unknown, now: number): KeyChanges {
  checkAgainst(keyChangesSchema, input);
  // The schema has just checked every field of this shape.
  const { expires_at: at, expires_in_seconds: within, ...body } = input as KeyChangesBody;
  const expiresAt =
    at === null && within === undefined
      ? null
      : expiryOf(
          {
            ...(at === undefined ? {} : { expires_at: at ?? 0 }),
            ...(within === undefined ? {} : { expires_in_seconds: within }),
          },
          now,
        );
  return {
    name: body.name,
    scopes: body.scopes,
    expiresAt,
    rpm: body.rpm,
    tpm: body.tpm,
    dailyRequests: body.daily_requests,
  };
}

/** Seconds of grace. Throws `invalid_request`. */
export function parseRotation(input: unknown): number {
  checkAgainst(rotationSchema, input);
  // The schema has just checked the field.
  const { grace_seconds: graceSeconds = 0 } = input as { grace_seconds?: number };
  return graceSeconds;
}
