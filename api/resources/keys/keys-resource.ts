import { SCOPES } from '../../../shared/domain/api-key.ts';
import type { KeyRow } from '../../../shared/mongo/tenants/key-repository.ts';
import type { TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import {
  deletedSchema,
  field,
  id,
  integer,
  kind,
  listOf,
  named,
  nullable,
  object,
  oneOf,
  resource,
  schemasOf,
  text,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

function statusOf(row: KeyRow, now: number): 'active' | 'revoked' | 'expired' {
  if (row.status === 'revoked') return 'revoked';
  return row.expiresAt !== undefined && row.expiresAt <= now ? 'expired' : 'active';
}

function graceEndOf({ previous = [] }: KeyRow, now: number): number | undefined {
  const ends = previous.map(({ expiresAt }) => expiresAt).filter((time) => time > now);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

export const keyResource = resource<[row: KeyRow, tenant: TenantRow, now: number]>('ApiKey', {
  id: field(id('key'), PATH_PARAMETERS.keyId.example, (row) => row._id),
  object: kind('api_key'),
  created_at: field(time(), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  name: field(text(), 'Homework helper', (row) => row.name),
  mode: field(
    oneOf(['live', 'test'], 'A test key is not billed, and sees and changes test things only.'),
    'live',
    (row) => row.mode,
  ),
  scopes: field(listOf(oneOf<string>(SCOPES)), ['chat', 'chat.stream'], (row) => row.scopes),
  status: field(oneOf(['active', 'revoked', 'expired']), 'active', (row, _tenant, now) => statusOf(row, now)),
  // Those in effect: the key's own, or else its tenant's.
  limits: field(
    object({
      rpm: integer('Requests per minute.', 1),
      tpm: integer('Tokens per minute.', 1),
      daily_requests: integer('Requests in any 24 hours; 0 means unlimited.', 0),
    }),
    { rpm: 30, tpm: 100_000, daily_requests: 0 },
    (row, tenant) => ({
      rpm: row.rpm ?? tenant.rpm,
      tpm: row.tpm ?? tenant.tpm,
      daily_requests: row.dailyRequests ?? tenant.dailyRequests,
    }),
  ),
  expires_at: field(nullable(time('Time of expiry')), 1_797_847_200, (row) => toSecondsOrNull(row.expiresAt)),
  last_used_at: field(nullable(time('Time of the latest use, within a minute')), null, (row) =>
    toSecondsOrNull(row.lastUsedAt),
  ),
  redacted_value: field(
    text('The beginning and the end of the value.'),
    'svc_sk_live_…7fQ2',
    (row) => row.redactedValue,
  ),
  previous_value_expires_at: field(
    nullable(time('Until when the value before the latest rotation is accepted')),
    null,
    (row, _tenant, now) => toSecondsOrNull(graceEndOf(row, now)),
  ),
});
export const apiKeyWithValueSchema = named(
  'ApiKeyWithValue',
  object({ ...schemasOf(keyResource.fields), value: text('The key itself, shown only once.') }, ['value']),
);
export const KEY_WITH_VALUE_EXAMPLE = { ...keyResource.example, value: 'svc_sk_live_AbCdEfGhIjKlMnOpQrStUvWxYz7fQ2' };
export const deletedApiKeySchema = named('DeletedApiKey', deletedSchema('api_key', id('key')));

export function revokedKey(keyId: string) {
  return { id: keyId, object: 'api_key', deleted: true };
}
