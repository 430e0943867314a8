import Joi from 'joi';

import { storedContextSchema, storedText, tierSchema } from '../../../shared/contracts/chat-request.ts';
import type { Tier } from '../../../shared/contracts/chat-request.ts';
import { moderationSettingsSchema } from '../../../shared/contracts/space.ts';
import type { ModerationSettings } from '../../../shared/contracts/space.ts';
import type { TenantChanges, TenantRepository, TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import type { AccessFlags } from '../../../shared/redis/stores/access-flags.ts';
import {
  countSchema,
  creditsSchema,
  requestsPerDaySchema,
  requestsPerMinuteSchema,
  tokensPerMinuteSchema,
} from '../../contract/json-schema.ts';

const NAME_CHARACTERS_MAX = 256;
const TOKENS_PER_MONTH_MAX = 1_000_000_000_000_000;
const REQUESTS_PER_MINUTE_MAX = 1_000_000_000;
const TOKENS_PER_MINUTE_MAX = 1_000_000_000_000;
const IN_FLIGHT_MAX = 1_000_000;
const WEIGHT_MAX = 100;
const RETENTION_SECONDS_MAX = 30 * 86_400;

/** Categories with a threshold become field names in MongoDB, which must not contain NUL, dots or dollar signs. */
const checkCategories: Joi.CustomValidator<ModerationSettings> = (value, helpers) =>
  Object.keys(value.thresholds ?? {}).every((name) => /^[a-z][a-z0-9_/-]{0,63}$/.test(name))
    ? value
    : helpers.message({
        custom: '{{#label}}.thresholds must name categories in lower-case letters, digits, -, _ and /',
      });

const settings = {
  name: storedText(NAME_CHARACTERS_MAX).description('For people.'),
  default_model: tierSchema.description('The tier of requests that name none.'),
  rpm: requestsPerMinuteSchema.description('Requests per minute of a key.'),
  tpm: tokensPerMinuteSchema.description('Tokens per minute of a key.'),
  daily_requests: requestsPerDaySchema.description('Requests of a key in any 24 hours; 0 means unlimited.'),
  chat_rpm: requestsPerMinuteSchema.description('Complete chat requests per minute.'),
  stream_rpm: requestsPerMinuteSchema.description('Streamed chat requests per minute.'),
  tenant_rpm: countSchema(1, REQUESTS_PER_MINUTE_MAX)
    .allow(null)
    .description('Chat requests per minute of all keys together; null: no ceiling.'),
  tenant_tpm: countSchema(1, TOKENS_PER_MINUTE_MAX)
    .allow(null)
    .description('Tokens per minute of all keys together; null: no ceiling.'),
  max_in_flight: countSchema(1, IN_FLIGHT_MAX)
    .allow(null)
    .description('Chat requests of all keys together that have not ended; null: no ceiling.'),
  weight: countSchema(1, WEIGHT_MAX).description(
    'Share of the workers while requests wait, in proportion to the weights of the other tenants.',
  ),
  monthly_token_budget: countSchema(1, TOKENS_PER_MONTH_MAX)
    .allow(null)
    .description('Tokens a calendar month; null: no budget.'),
  subject: storedContextSchema,
  grade: storedContextSchema,
  on_disconnect: Joi.string()
    .valid('cancel', 'finish')
    .description('What happens to a request whose caller disconnects.'),
  retention_seconds: countSchema(0, RETENTION_SECONDS_MAX)
    .allow(null)
    .description(
      'How long answers stay after their end, in seconds; 0 keeps nothing of a conversation; null: the settings of the service.',
    ),
  moderation: moderationSettingsSchema
    .custom(checkCategories)
    .meta({
      reads: {
        type: ['object', 'null'],
        properties: {
          disabled: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 64 }, maxItems: 50 },
          thresholds: { type: 'object', additionalProperties: { type: 'number', minimum: 0, maximum: 1 } },
        },
        additionalProperties: false,
      },
      rule: 'Thresholds are from 0 to 1; their categories are named in lower-case letters, digits, -, _ and /.',
    })
    .allow(null)
    .description('Categories that never flag, and the scores at which others do; null: the settings of the service.'),
  test_daily_tokens: countSchema(0, TOKENS_PER_MONTH_MAX).description('Tokens a day of test keys.'),
};

export interface TenantSettingsBody {
  name?: string;
  default_model?: Tier;
  rpm?: number;
  tpm?: number;
  daily_requests?: number;
  chat_rpm?: number;
  stream_rpm?: number;
  tenant_rpm?: number | null;
  tenant_tpm?: number | null;
  max_in_flight?: number | null;
  weight?: number;
  monthly_token_budget?: number | null;
  subject?: string | null;
  grade?: string | null;
  on_disconnect?: 'cancel' | 'finish';
  retention_seconds?: number | null;
  moderation?: ModerationSettings | null;
  test_daily_tokens?: number;
}

/** `POST /tenants`. */
export const newTenantSchema = Joi.object<TenantSettingsBody & { name: string; credits?: number }>({
  ...settings,
  name: settings.name.required(),
  credits: creditsSchema.min(0).description('Granted at once.'),
}).required();

/** `PATCH /tenants/{tenant_id}`. */
export const tenantChangesSchema = Joi.object<TenantSettingsBody & { status?: 'active' | 'suspended' }>({
  ...settings,
  status: Joi.string().valid('active', 'suspended'),
}).required();

/** `POST /tenants/{tenant_id}/move`. */
export const tenantMoveSchema = Joi.object<{ shard: number }, true>({
  shard: Joi.number().integer().min(0).required().description('The number of the shard, as `GET /queues` lists them.'),
}).required();

export function toTenantChanges(body: TenantSettingsBody & { status?: 'active' | 'suspended' }): TenantChanges {
  return {
    name: body.name,
    defaultModel: body.default_model,
    rpm: body.rpm,
    tpm: body.tpm,
    dailyRequests: body.daily_requests,
    chatRpm: body.chat_rpm,
    streamRpm: body.stream_rpm,
    tenantRpm: body.tenant_rpm,
    tenantTpm: body.tenant_tpm,
    maxInFlight: body.max_in_flight,
    weight: body.weight,
    monthlyTokenBudget: body.monthly_token_budget,
    subject: body.subject,
    grade: body.grade,
    onDisconnect: body.on_disconnect,
    retentionSeconds: body.retention_seconds,
    moderation: body.moderation,
    testDailyTokens: body.test_daily_tokens,
    status: body.status,
  };
}

export interface ApplyStatusDeps {
  tenants: Pick<TenantRepository, 'find'>;
  accessFlags: Pick<AccessFlags, 'block' | 'unblock'>;
}

/**
 * Copies the status of the tenant's row to Redis. Reads the row again after each write, so that when several
 * administrators suspend, reactivate or move a tenant at the same time, all end with the flag of the final row, on its
 * shard.
 */
export async function applyStatus({ tenants, accessFlags }: ApplyStatusDeps, tenant: TenantRow): Promise<TenantRow> {
  let applied = tenant;
  for (;;) {
    if (applied.status === 'suspended') await accessFlags.block(applied.shard, applied._id);
    else await accessFlags.unblock(applied.shard, applied._id);
    const latest = (await tenants.find(applied._id)) ?? applied;
    if (latest.status === applied.status && latest.shard === applied.shard) return latest;
    applied = latest;
  }
}
