import Joi from 'joi';

import { codePoints } from '../../../shared/contracts/chat-request.ts';
import type { KeyMode } from '../../../shared/contracts/jobs.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { SCOPES } from '../../../shared/domain/keys/api-key.ts';
import type { Scope } from '../../../shared/domain/keys/api-key.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { KeySettings } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import {
  countSchema,
  NAME_CHARACTERS_MAX,
  REQUESTS_PER_DAY_MAX,
  REQUESTS_PER_MINUTE_MAX,
  TOKENS_PER_MINUTE_MAX,
} from '../tenants/schema.ts';

/** The last second of the year 9999. */
const UNIX_SECONDS_MAX = 253_402_300_799;
const TEN_YEARS_SECONDS = 315_360_000;

/** The settings of a key, for creating and changing it. */
export const keyFields = {
  name: Joi.string().allow('').custom(codePoints(NAME_CHARACTERS_MAX)).description('For people; empty by default.'),
  scopes: Joi.array()
    .items(Joi.string().valid(...SCOPES))
    .min(1)
    .unique()
    .description('What the key may call; `*` is everything and the default.'),
  expires_at: countSchema(1, UNIX_SECONDS_MAX).description('Unix seconds; not together with expires_in_seconds.'),
  expires_in_seconds: countSchema(1, TEN_YEARS_SECONDS).description('From this moment on.'),
  rpm: countSchema(1, REQUESTS_PER_MINUTE_MAX).description("Requests per minute; the tenant's limit by default."),
  tpm: countSchema(1, TOKENS_PER_MINUTE_MAX).description("Tokens per minute; the tenant's limit by default."),
  daily_requests: countSchema(0, REQUESTS_PER_DAY_MAX).description(
    "Requests in any 24 hours, 0 for no limit; the tenant's limit by default.",
  ),
};

/** docs/spec/contract.md section 6, `POST /keys`. */
export const newKeySchema = Joi.object({
  ...keyFields,
  mode: Joi.string().valid('live', 'test').description('`live` by default.'),
}).required();

interface NewKeyBody {
  name?: string;
  mode?: KeyMode;
  scopes?: Scope[];
  expires_at?: number;
  expires_in_seconds?: number;
  rpm?: number;
  tpm?: number;
  daily_requests?: number;
}

/** The expiry that a body asks for, in milliseconds since the epoch; undefined: none. */
export function expiryOf(body: Pick<NewKeyBody, 'expires_at' | 'expires_in_seconds'>, now: number): number | undefined {
  const { expires_at: at, expires_in_seconds: within } = body;
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
export function parseNewKey(input: unknown, now: number): KeySettings {
  checkAgainst(newKeySchema, input);
  // The schema has just checked every field of this shape.
  const body = input as NewKeyBody;
  return {
    name: body.name ?? '',
    mode: body.mode ?? 'live',
    scopes: body.scopes ?? ['*'],
    expiresAt: expiryOf(body, now),
    rpm: body.rpm,
    tpm: body.tpm,
    dailyRequests: body.daily_requests,
  };
}
