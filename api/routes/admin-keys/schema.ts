import Joi from 'joi';

import { codePoints } from '../../../shared/contracts/chat-request.ts';
import type { KeyMode } from '../../../shared/contracts/jobs.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { SCOPES } from '../../../shared/domain/keys/api-key.ts';
import type { Scope } from '../../../shared/domain/keys/api-key.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { KeySettings } from '../../../shared/infra/mongo/key-repository.ts';
import {
  countSchema,
  NAME_CHARACTERS_MAX,
  REQUESTS_PER_DAY_MAX,
  REQUESTS_PER_MINUTE_MAX,
  TOKENS_PER_MINUTE_MAX,
} from '../admin-tenants/schema.ts';

/** The last second of the year 9999. */
const UNIX_SECONDS_MAX = 253_402_300_799;
const TEN_YEARS_SECONDS = 315_360_000;

/** contract.md section 6, `POST /keys`. */
const schema = Joi.object({
  name: Joi.string().allow('').custom(codePoints(NAME_CHARACTERS_MAX)),
  mode: Joi.string().valid('live', 'test'),
  scopes: Joi.array()
    .items(Joi.string().valid(...SCOPES))
    .min(1)
    .unique(),
  expires_at: countSchema(1, UNIX_SECONDS_MAX),
  expires_in_seconds: countSchema(1, TEN_YEARS_SECONDS),
  rpm: countSchema(1, REQUESTS_PER_MINUTE_MAX),
  tpm: countSchema(1, TOKENS_PER_MINUTE_MAX),
  daily_requests: countSchema(0, REQUESTS_PER_DAY_MAX),
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

function expiryOf({ expires_at: at, expires_in_seconds: within }: NewKeyBody, now: number): number | undefined {
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
  checkAgainst(schema, input);
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
