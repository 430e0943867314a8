import Joi from 'joi';

/** A tenant's own moderation rules; for whatever is absent, the service's defaults apply. */
export interface ModerationSettings {
  /** Categories that never flag. */
  disabled?: string[];
  /** Score from 0 to 1 at which a category counts as flagged. */
  thresholds?: Record<string, number>;
}

export const moderationSettingsSchema = Joi.object({
  disabled: Joi.array().items(Joi.string().max(64)).max(50),
  thresholds: Joi.object().pattern(Joi.string().max(64), Joi.number().min(0).max(1)),
});
