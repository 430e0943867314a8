import Joi from 'joi';

export const KEY_MODES = ['live', 'test'] as const;
export type KeyMode = (typeof KEY_MODES)[number];

/** A tenant's live or test data (docs/spec.md#test-keys): every look-up says in which space. */
export interface Space {
  tenantId: string;
  mode: KeyMode;
}

/** `any`: both spaces, for work that concerns the tenant as a whole. */
export interface SearchedSpace {
  tenantId: string;
  mode: KeyMode | 'any';
}

/** Live webhooks get the events of every key, test webhooks those of test keys. */
export function overseersOf(keyMode: KeyMode): SearchedSpace['mode'] {
  return keyMode === 'test' ? 'any' : 'live';
}

/** Live keys also see the tenant's test keys and what those have used and done. */
export function overseenBy({ tenantId, mode }: Space): SearchedSpace {
  return { tenantId, mode: mode === 'live' ? 'any' : mode };
}

/** The service's defaults apply where a rule is absent. */
export interface ModerationSettings {
  /** Categories that never flag. */
  disabled?: string[];
  /** Score from 0 to 1 at which a category counts as flagged. */
  thresholds?: Record<string, number>;
}

/** Categories with a threshold become field names in MongoDB, which must not contain NUL, dots or dollar signs. */
const checkCategories: Joi.CustomValidator<ModerationSettings> = (value, helpers) =>
  Object.keys(value.thresholds ?? {}).every((name) => /^[a-z][a-z0-9_/-]{0,63}$/.test(name))
    ? value
    : helpers.message({
        custom: '{{#label}}.thresholds must name categories in lower-case letters, digits, -, _ and /',
      });

export const moderationSettingsSchema = Joi.object<ModerationSettings>({
  disabled: Joi.array().items(Joi.string().max(64)).max(50),
  thresholds: Joi.object().pattern(Joi.string().max(64), Joi.number().min(0).max(1)),
})
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
  .description('Categories that never flag, and the scores at which others do; null: the settings of the service.');
