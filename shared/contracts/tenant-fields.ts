import Joi from 'joi';

import { storedContextSchema, storedText, tierSchema, wholeNumberBetween } from './chat-request.ts';
import type { Tier } from './chat-request.ts';
import { moderationSettingsSchema } from './space.ts';

/** Every counted request is an entry of a sorted set in Redis, so the memory limits the size of a window. */
export const requestsPerMinuteSchema = wholeNumberBetween(1, 1_000_000);
export const tokensPerMinuteSchema = wholeNumberBetween(1, 1_000_000_000);
/** 0 means unlimited. */
export const requestsPerDaySchema = wholeNumberBetween(0, 1_000_000_000);
const TOKENS_PER_MONTH_MAX = 1_000_000_000_000_000;

/** `Stored` has null where null means no bound, and undefined where the row may lack the field. */
export interface TenantField<Stored = unknown> {
  /** For the bodies of `POST` and `PATCH`; the answer's JSON Schema follows from it. */
  rule: Joi.AnySchema;
  /** Undefined: a new tenant, or a row without the field, has nothing. */
  preset: Stored | undefined;
  kind: 'required' | 'preset' | 'bound' | 'optional';
}

const required = <Value>(rule: Joi.AnySchema<Value>): TenantField<Value> => ({
  rule,
  preset: undefined,
  kind: 'required',
});

const preset = <Value>(rule: Joi.AnySchema, value: Value) => ({ rule, preset: value, kind: 'preset' as const });

/** Null takes the bound away. */
const bound = (rule: Joi.NumberSchema, value: number | null): TenantField<number | null> => ({
  rule: rule.allow(null),
  preset: value,
  kind: 'bound',
});

/** Null takes the value away. */
const optional = <Value>(rule: Joi.AnySchema<Value>): TenantField<Value | undefined> => ({
  rule: rule.allow(null),
  preset: undefined,
  kind: 'optional',
});

/**
 * Settings of a tenant by the row's name; the wire has the same in snake_case. Row, bodies, changes, answer, example,
 * export and `Principal` follow. Defaults: docs/spec.md#rate-limits, docs/spec.md#tenant-ceilings, docs/spec.md#queue,
 * docs/spec.md#test-keys.
 */
export const tenantFields = {
  name: required(storedText(256).description('For people.')),
  defaultModel: preset<Tier>(tierSchema.description('The tier of requests that name none.'), 'mobius'),
  rpm: preset(requestsPerMinuteSchema.description('Requests per minute of a key.'), 60),
  tpm: preset(tokensPerMinuteSchema.description('Tokens per minute of a key.'), 100_000),
  dailyRequests: preset(requestsPerDaySchema.description('Requests of a key in any 24 hours; 0 means unlimited.'), 0),
  chatRpm: preset(requestsPerMinuteSchema.description('Complete chat requests per minute.'), 120),
  streamRpm: preset(requestsPerMinuteSchema.description('Streamed chat requests per minute.'), 60),
  tenantRpm: bound(
    wholeNumberBetween(1, 1_000_000_000).description(
      'Chat requests per minute of all keys together; null: no ceiling.',
    ),
    6_000,
  ),
  tenantTpm: bound(
    wholeNumberBetween(1, 1_000_000_000_000).description('Tokens per minute of all keys together; null: no ceiling.'),
    10_000_000,
  ),
  maxInFlight: bound(
    wholeNumberBetween(1, 1_000_000).description(
      'Chat requests of all keys together that have not ended; null: no ceiling.',
    ),
    1_000,
  ),
  weight: preset(
    wholeNumberBetween(1, 100).description(
      'Share of the workers while requests wait, in proportion to the weights of the other tenants.',
    ),
    1,
  ),
  monthlyTokenBudget: bound(
    wholeNumberBetween(1, TOKENS_PER_MONTH_MAX).description('Tokens a calendar month (UTC); null: no budget.'),
    null,
  ),
  testDailyTokens: preset(
    wholeNumberBetween(0, TOKENS_PER_MONTH_MAX).description('Tokens a day of test keys.'),
    1_000_000,
  ),
  subject: optional(storedContextSchema),
  grade: optional(storedContextSchema),
  onDisconnect: preset<'cancel' | 'finish'>(
    Joi.string().valid('cancel', 'finish').description('What happens to a request whose caller disconnects.'),
    'cancel',
  ),
  retentionSeconds: optional(
    wholeNumberBetween(0, 30 * 86_400).description(
      'How long answers stay after their end, in seconds; 0 keeps nothing of a conversation; null: the settings of the service.',
    ),
  ),
  moderation: optional(moderationSettingsSchema),
} satisfies Record<string, TenantField>;

type Fields = typeof tenantFields;
export type TenantFieldName = keyof Fields;
type StoredOf<Field> = Field extends { kind: 'preset'; preset: infer Value }
  ? Value
  : Field extends TenantField<infer Value>
    ? Value
    : never;
type OptionalName = {
  [Name in TenantFieldName]: undefined extends StoredOf<Fields[Name]> ? Name : never;
}[TenantFieldName];

type Snake<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<Rest>}`
  : '';

export type TenantSettings = { [Name in Exclude<TenantFieldName, OptionalName>]: StoredOf<Fields[Name]> } & {
  [Name in OptionalName]?: NonNullable<StoredOf<Fields[Name]>>;
};
type ValueOf<Name extends TenantFieldName> =
  Exclude<StoredOf<Fields[Name]>, undefined> | (Name extends OptionalName ? null : never);
export type TenantWire = { [Name in TenantFieldName as Snake<Name>]: ValueOf<Name> };
/** Undefined leaves a setting as it is, null takes an optional one away. */
export type TenantSettingsChanges = { [Name in TenantFieldName]?: ValueOf<Name> | undefined };

const wireName = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** Object.entries loses the names; the lists below come from `tenantFields` itself. */
export const TENANT_FIELDS = Object.entries(tenantFields) as [TenantFieldName, TenantField][];

/** Object.fromEntries loses the wire's names. */
export const tenantRules = Object.fromEntries(TENANT_FIELDS.map(([name, { rule }]) => [wireName(name), rule])) as {
  [Name in keyof TenantWire]: Joi.AnySchema;
};

/** Presets fill what is absent. */
export function tenantSettingsOf(given: TenantSettingsChanges): TenantSettings {
  const values = TENANT_FIELDS.flatMap(([name, field]) => {
    const value = given[name] ?? (field.kind === 'bound' && given[name] === null ? null : field.preset);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(values) as TenantSettings;
}

export function toTenantWire(row: TenantSettings): TenantWire {
  const settings = tenantSettingsOf(row);
  return Object.fromEntries(TENANT_FIELDS.map(([name]) => [wireName(name), settings[name] ?? null])) as TenantWire;
}

export function toTenantChanges(body: Partial<TenantWire>): TenantSettingsChanges {
  return Object.fromEntries(TENANT_FIELDS.map(([name]) => [name, body[wireName(name) as keyof TenantWire]]));
}

/** Per key, for resuming, looking up and cancelling requests (docs/spec.md#rate-limits). */
export const LOOKUPS_PER_MINUTE = 600;

/**
 * Ceiling for all keys of a tenant together (it may have a hundred): calls per minute beside chat requests, which have
 * their own ceilings, and look-ups (docs/spec.md#tenant-ceilings).
 */
const TENANT_KEYS = 10;
export const TENANT_LOOKUPS_PER_MINUTE = TENANT_KEYS * LOOKUPS_PER_MINUTE;

/** `rpm`: the calling key's. A key with more than usual has all of it. */
export function tenantCallsPerMinute({ rpm }: { rpm: number }): number {
  return Math.max(TENANT_KEYS * tenantFields.rpm.preset, rpm);
}

/** Failed authentications per minute and address (docs/spec.md#authentication). */
export const ADDRESS_FAILURES_PER_MINUTE = 60;
