import Joi from 'joi';

import { storedText } from '../../../shared/contracts/chat-request.ts';
import type { KeyMode } from '../../../shared/contracts/space.ts';
import { SCOPES } from '../../../shared/domain/api-key.ts';
import type { Scope } from '../../../shared/domain/api-key.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { KeyChanges, KeySettings } from '../../../shared/mongo/tenants/key-repository.ts';
import {
  requestsPerDaySchema,
  requestsPerMinuteSchema,
  tokensPerMinuteSchema,
} from '../../../shared/contracts/tenant-fields.ts';
import { countSchema, unixSecondsSchema } from '../../contract/json-schema.ts';

const NAME_CHARACTERS_MAX = 256;
const TEN_YEARS_SECONDS = 315_360_000;
/** docs/spec.md#scopes. A key that has fewer must name those that it grants (key-changes.ts). */
const DEFAULT_SCOPES: readonly Scope[] = ['*'];

const fields = {
  name: storedText(NAME_CHARACTERS_MAX).allow('').description('For people; empty by default.'),
  scopes: Joi.array()
    .items(Joi.string().valid(...SCOPES))
    .min(1)
    .unique()
    .description('What the key may call; `*`, the default, is everything.'),
  expires_at: unixSecondsSchema(1).description('Unix seconds; not together with `expires_in_seconds`.'),
  expires_in_seconds: countSchema(1, TEN_YEARS_SECONDS).description('Seconds from now.'),
  rpm: requestsPerMinuteSchema.description("Requests per minute; the tenant's limit by default."),
  tpm: tokensPerMinuteSchema.description("Tokens per minute; the tenant's limit by default."),
  daily_requests: requestsPerDaySchema.description(
    "Requests in any 24 hours, 0 for no limit; the tenant's limit by default.",
  ),
};

export interface NewKeyBody {
  name?: string;
  mode?: KeyMode;
  scopes?: Scope[];
  expires_at?: number;
  expires_in_seconds?: number;
  rpm?: number;
  tpm?: number;
  daily_requests?: number;
}

/** The settings of a new key, created by a tenant or by the administrator (docs/spec.md#keys). */
export const newKeySchema = Joi.object<NewKeyBody, true>({
  ...fields,
  mode: Joi.string().valid('live', 'test').description('`live` by default.'),
}).required();

export interface KeyChangesBody {
  name?: string;
  scopes?: Scope[];
  expires_at?: number | null;
  expires_in_seconds?: number;
  rpm?: number | null;
  tpm?: number | null;
  daily_requests?: number | null;
}

/** `null` removes a setting: no expiry, the tenant's limits. The mode cannot change. */
export const keyChangesSchema = Joi.object<KeyChangesBody, true>({
  ...fields,
  expires_at: fields.expires_at.allow(null),
  rpm: fields.rpm.allow(null),
  tpm: fields.tpm.allow(null),
  daily_requests: fields.daily_requests.allow(null),
}).required();

/** The expiry that a body asks for, in milliseconds since the epoch; undefined: none. Throws `invalid_request`. */
function expiryOf(at: number | undefined, within: number | undefined, now: number): number | undefined {
  if (at !== undefined && within !== undefined) {
    throw new ServiceError('invalid_request', '`expires_in_seconds` must not be given together with `expires_at`.', {
      param: 'expires_in_seconds',
    });
  }
  if (within !== undefined) return now + within * 1000;
  if (at === undefined) return undefined;
  if (at * 1000 <= now) {
    throw new ServiceError('invalid_request', '`expires_at` must be in the future, in Unix seconds.', {
      param: 'expires_at',
    });
  }
  return at * 1000;
}

/** Throws `invalid_request`. */
export function toKeySettings(body: NewKeyBody, now: number): KeySettings {
  const { mode = 'live' } = body;
  return {
    name: body.name ?? '',
    mode,
    scopes: body.scopes ?? DEFAULT_SCOPES,
    expiresAt: expiryOf(body.expires_at, body.expires_in_seconds, now),
    rpm: body.rpm,
    tpm: body.tpm,
    dailyRequests: body.daily_requests,
  };
}

/** Throws `invalid_request`. */
export function toKeyChanges(body: KeyChangesBody, now: number): KeyChanges {
  const { expires_at: at, expires_in_seconds: within } = body;
  return {
    name: body.name,
    scopes: body.scopes,
    expiresAt: at === null && within === undefined ? null : expiryOf(at === null ? 0 : at, within, now),
    rpm: body.rpm,
    tpm: body.tpm,
    dailyRequests: body.daily_requests,
  };
}
