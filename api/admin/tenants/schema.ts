import Joi from 'joi';

import { codePoints, contextTextSchema, tierSchema } from '../../../shared/contracts/chat-request.ts';
import type { Tier } from '../../../shared/contracts/chat-request.ts';
import { creditsSchema } from '../../contract/credits.ts';
import { moderationSettingsSchema } from '../../../shared/contracts/moderation-settings.ts';
import type { ModerationSettings } from '../../../shared/contracts/moderation-settings.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import type { TenantChanges } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';

/** Each counted request is an entry of a sorted set in Redis, so a window has a size that memory can bear. */
export const REQUESTS_PER_MINUTE_MAX = 1_000_000;
export const TOKENS_PER_MINUTE_MAX = 1_000_000_000;
export const REQUESTS_PER_DAY_MAX = 1_000_000_000;
const TOKENS_PER_MONTH_MAX = 1_000_000_000_000_000;
export const NAME_CHARACTERS_MAX = 256;

export const countSchema = (min: number, max: number) => Joi.number().integer().min(min).max(max);

/** Categories with a threshold become field names in MongoDB, which takes no NUL, dot or dollar sign there. */
const checkCategories: Joi.CustomValidator<ModerationSettings> = (value, helpers) =>
  Object.keys(value.thresholds ?? {}).every((name) => /^[a-z][a-z0-9_/-]{0,63}$/.test(name))
    ? value
    : helpers.message({
        custom: '{{#label}}.thresholds must name categories in lower-case letters, digits, -, _ and /',
      });

const settings = {
  name: Joi.string().custom(codePoints(NAME_CHARACTERS_MAX)),
  default_model: tierSchema,
  rpm: countSchema(1, REQUESTS_PER_MINUTE_MAX),
  tpm: countSchema(1, TOKENS_PER_MINUTE_MAX),
  daily_requests: countSchema(0, REQUESTS_PER_DAY_MAX),
  chat_rpm: countSchema(1, REQUESTS_PER_MINUTE_MAX),
  stream_rpm: countSchema(1, REQUESTS_PER_MINUTE_MAX),
  monthly_token_budget: countSchema(1, TOKENS_PER_MONTH_MAX).allow(null),
  subject: contextTextSchema.allow(null),
  grade: contextTextSchema.allow(null),
  on_disconnect: Joi.string().valid('cancel', 'finish'),
  moderation: moderationSettingsSchema.custom(checkCategories).allow(null),
  test_daily_tokens: countSchema(0, TOKENS_PER_MONTH_MAX),
};

const createSchema = Joi.object({
  ...settings,
  name: settings.name.required(),
  credits: creditsSchema.min(0),
}).required();

const patchSchema = Joi.object({ ...settings, status: Joi.string().valid('active', 'suspended') }).required();

interface SettingsBody {
  name?: string;
  default_model?: Tier;
  rpm?: number;
  tpm?: number;
  daily_requests?: number;
  chat_rpm?: number;
  stream_rpm?: number;
  monthly_token_budget?: number | null;
  subject?: string | null;
  grade?: string | null;
  on_disconnect?: 'cancel' | 'finish';
  moderation?: ModerationSettings | null;
  test_daily_tokens?: number;
  status?: 'active' | 'suspended';
}

function toChanges(body: SettingsBody): TenantChanges {
  return {
    name: body.name,
    defaultModel: body.default_model,
    rpm: body.rpm,
    tpm: body.tpm,
    dailyRequests: body.daily_requests,
    chatRpm: body.chat_rpm,
    streamRpm: body.stream_rpm,
    monthlyTokenBudget: body.monthly_token_budget,
    subject: body.subject,
    grade: body.grade,
    onDisconnect: body.on_disconnect,
    moderation: body.moderation,
    testDailyTokens: body.test_daily_tokens,
    status: body.status,
  };
}

/** Throws `invalid_request`. */
export function parseNewTenant(input: unknown): { name: string; settings: TenantChanges; credits: number } {
  checkAgainst(createSchema, input);
  // The schema has just checked every field of this shape.
  const body = input as SettingsBody & { name: string; credits?: number };
  return { name: body.name, settings: toChanges(body), credits: body.credits ?? 0 };
}

/** Throws `invalid_request`. */
export function parseTenantChanges(input: unknown): TenantChanges {
  checkAgainst(patchSchema, input);
  // The schema has just checked every field of this shape.
  return toChanges(input as SettingsBody);
}
