import { TIERS } from '../../../shared/contracts/chat-request.ts';
import { ceilingsOf, DEFAULT_WEIGHT } from '../../../shared/domain/limit-defaults.ts';
import { toCredits } from '../../../shared/domain/pricing.ts';
import type { TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import {
  constant,
  id,
  integer,
  named,
  nullable,
  number,
  object,
  oneOf,
  pageSchema,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';
import type { Balance } from '../../resources/billing/billing-status.ts';

const fields = {
  id: id('ten'),
  object: constant('tenant'),
  created_at: time(),
  name: text(),
  status: oneOf(['active', 'suspended']),
  default_model: oneOf(TIERS),
  rpm: integer('Requests per minute of a key.', 1),
  tpm: integer('Tokens per minute of a key.', 1),
  daily_requests: integer('Requests of a key in any 24 hours; 0 means unlimited.', 0),
  chat_rpm: integer('Complete chat requests per minute.', 1),
  stream_rpm: integer('Streamed chat requests per minute.', 1),
  tenant_rpm: nullable(integer('Chat requests per minute of all keys together; null: no ceiling.', 1)),
  tenant_tpm: nullable(integer('Tokens per minute of all keys together; null: no ceiling.', 1)),
  max_in_flight: nullable(integer('Chat requests of all keys together that have not ended; null: no ceiling.', 1)),
  weight: integer('Share of the workers while requests wait, in proportion to other tenants.', 1),
  monthly_token_budget: nullable(integer('Tokens a calendar month; null: no budget.', 1)),
  test_daily_tokens: integer('Tokens a day of test keys.', 0),
  subject: nullable(text()),
  grade: nullable(text()),
  on_disconnect: oneOf(['cancel', 'finish'], 'What happens to a request whose caller disconnects.'),
  retention_seconds: nullable(integer('How long answers stay after their end; null: the settings of the service.', 0)),
  moderation: { type: ['object', 'null'], description: 'Null: the settings of the service.' },
  balance: number('Credits; below zero where an answer cost more than was left.'),
  held: number('Credits held by requests in progress.'),
  available: number('The balance less what is held.'),
  shard: integer('The part of Redis that has what the tenant has in flight.', 0),
};
export const tenantSchema = named('Tenant', object(fields));
export const tenantListSchema = named('TenantList', pageSchema(tenantSchema));

export function toTenantResource(row: TenantRow, { balanceMicro, heldMicro }: Balance) {
  const { tenantRpm, tenantTpm, maxInFlight } = ceilingsOf(row);
  return {
    id: row._id,
    object: 'tenant',
    created_at: toSeconds(row.createdAt),
    name: row.name,
    status: row.status,
    default_model: row.defaultModel,
    rpm: row.rpm,
    tpm: row.tpm,
    daily_requests: row.dailyRequests,
    chat_rpm: row.chatRpm,
    stream_rpm: row.streamRpm,
    tenant_rpm: tenantRpm,
    tenant_tpm: tenantTpm,
    max_in_flight: maxInFlight,
    weight: row.weight ?? DEFAULT_WEIGHT,
    monthly_token_budget: row.monthlyTokenBudget,
    test_daily_tokens: row.testDailyTokens,
    subject: row.subject ?? null,
    grade: row.grade ?? null,
    on_disconnect: row.onDisconnect,
    retention_seconds: row.retentionSeconds ?? null,
    moderation: row.moderation ?? null,
    balance: toCredits(balanceMicro),
    held: toCredits(heldMicro),
    available: toCredits(balanceMicro - heldMicro),
    shard: row.shard,
  } satisfies FieldsOf<typeof fields>;
}

export const TENANT_EXAMPLE: ReturnType<typeof toTenantResource> = {
  id: PATH_PARAMETERS.tenantId.example,
  object: 'tenant',
  created_at: 1_795_255_200,
  name: 'Lakeside School',
  status: 'active',
  default_model: 'mobius',
  rpm: 60,
  tpm: 100_000,
  daily_requests: 0,
  chat_rpm: 120,
  stream_rpm: 60,
  tenant_rpm: 6_000,
  tenant_tpm: 10_000_000,
  max_in_flight: 1_000,
  weight: 1,
  monthly_token_budget: null,
  test_daily_tokens: 1_000_000,
  subject: null,
  grade: null,
  on_disconnect: 'cancel',
  retention_seconds: null,
  moderation: null,
  balance: 250_000,
  held: 0,
  available: 250_000,
  shard: 0,
};
