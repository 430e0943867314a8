import { SCOPES } from '../../../shared/domain/api-key.ts';
import type { KeyRow } from '../../../shared/mongo/tenants/key-repository.ts';
import type { TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import {
  constant,
  deletedSchema,
  id,
  integer,
  listOf,
  named,
  nullable,
  object,
  oneOf,
  pageSchema,
  text,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const fields = {
  id: id('key'),
  object: constant('api_key'),
  created_at: time(),
  name: text(),
  mode: oneOf(['live', 'test'], 'A test key is not billed, and sees and changes test things only.'),
  scopes: listOf(oneOf(SCOPES)),
  status: oneOf(['active', 'revoked', 'expired']),
  limits: object({
    rpm: integer('Requests per minute.', 1),
    tpm: integer('Tokens per minute.', 1),
    daily_requests: integer('Requests in any 24 hours; 0 means unlimited.', 0),
  }),
  expires_at: nullable(time('Time of expiry')),
  last_used_at: nullable(time('Time of the latest use, within a minute')),
  redacted_value: text('The beginning and the end of the value.'),
  previous_value_expires_at: nullable(time('Until when the value before the latest rotation is accepted')),
};

export const apiKeySchema = named('ApiKey', object(fields));
export const apiKeyWithValueSchema = named(
  'ApiKeyWithValue',
  object({ ...fields, value: text('The key itself, shown only once.') }, ['value']),
);
export const apiKeyListSchema = named('ApiKeyList', pageSchema(apiKeySchema));
export const deletedApiKeySchema = named('DeletedApiKey', deletedSchema('api_key', id('key')));

function statusOf(row: KeyRow, now: number): 'active' | 'revoked' | 'expired' {
  if (row.status === 'revoked') return 'revoked';
  return row.expiresAt !== undefined && row.expiresAt <= now ? 'expired' : 'active';
}

function graceEndOf({ previous = [] }: KeyRow, now: number): number | undefined {
  const ends = previous.map(({ expiresAt }) => expiresAt).filter((time) => time > now);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/** `limits` are those in effect: the key's own, or else its tenant's. */
export function toKeyResource(row: KeyRow, tenant: TenantRow, now: number) {
  return {
    id: row._id,
    object: 'api_key',
    created_at: toSeconds(row.createdAt),
    name: row.name,
    mode: row.mode,
    scopes: row.scopes,
    status: statusOf(row, now),
    limits: {
      rpm: row.rpm ?? tenant.rpm,
      tpm: row.tpm ?? tenant.tpm,
      daily_requests: row.dailyRequests ?? tenant.dailyRequests,
    },
    expires_at: toSecondsOrNull(row.expiresAt),
    last_used_at: toSecondsOrNull(row.lastUsedAt),
    redacted_value: row.redactedValue,
    previous_value_expires_at: toSecondsOrNull(graceEndOf(row, now)),
  } satisfies FieldsOf<typeof fields>;
}

export const KEY_EXAMPLE: ReturnType<typeof toKeyResource> = {
  id: PATH_PARAMETERS.keyId.example,
  object: 'api_key',
  created_at: 1_795_255_200,
  name: 'Homework helper',
  mode: 'live',
  scopes: ['chat', 'chat.stream'],
  status: 'active',
  limits: { rpm: 30, tpm: 100_000, daily_requests: 0 },
  expires_at: 1_797_847_200,
  last_used_at: null,
  redacted_value: 'svc_sk_live_…7fQ2',
  previous_value_expires_at: null,
};
export const KEY_WITH_VALUE_EXAMPLE = { ...KEY_EXAMPLE, value: 'svc_sk_live_AbCdEfGhIjKlMnOpQrStUvWxYz7fQ2' };

/** The answer to a revocation. */
export function revokedKey(keyId: string) {
  return { id: keyId, object: 'api_key', deleted: true };
}
