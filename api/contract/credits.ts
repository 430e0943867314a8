import Joi from 'joi';

/** Micro-credits of a larger sum would leave the range in which a number is exact. */
const CREDITS_MAX = 1_000_000_000;

/** Six decimals are whole micro-credits; a seventh would be lost (docs/spec/contract.md section 2). */
export const atMostSixDecimals: Joi.CustomValidator<number> = (value, helpers) =>
  Number(value.toFixed(6)) === value ? value : helpers.message({ custom: '{{#label}} must have at most six decimals' });

/** An amount of credits on the wire, of either sign. */
export const creditsSchema = Joi.number()
  .min(-CREDITS_MAX)
  .max(CREDITS_MAX)
  .custom(atMostSixDecimals)
  .meta({ rule: 'At most six decimals.' });
