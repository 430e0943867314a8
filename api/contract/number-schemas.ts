import type Joi from 'joi';

import { numberBetween, wholeNumberBetween } from '../../shared/contracts/chat-request.ts';

/** Every counted request is an entry of a sorted set in Redis, so the memory limits the size of a window. */
const REQUESTS_PER_MINUTE_MAX = 1_000_000;
const TOKENS_PER_MINUTE_MAX = 1_000_000_000;
const REQUESTS_PER_DAY_MAX = 1_000_000_000;
/** The last second of the year 9999. */
const UNIX_SECONDS_MAX = 253_402_300_799;
/** The micro-credits of a larger sum would exceed the range in which numbers are exact. */
const CREDITS_MAX = 1_000_000_000;

/** A whole number within bounds. */
export const countSchema = (min: number, max: number) => wholeNumberBetween(min, max);

export const requestsPerMinuteSchema = countSchema(1, REQUESTS_PER_MINUTE_MAX);
export const tokensPerMinuteSchema = countSchema(1, TOKENS_PER_MINUTE_MAX);
/** 0 means unlimited. */
export const requestsPerDaySchema = countSchema(0, REQUESTS_PER_DAY_MAX);

export const unixSecondsSchema = (min: 0 | 1) => countSchema(min, UNIX_SECONDS_MAX);

/** Six decimals are whole micro-credits; a seventh would be lost (docs/spec.md#price). */
export const atMostSixDecimals: Joi.CustomValidator<number> = (value, helpers) =>
  Number(value.toFixed(6)) === value ? value : helpers.message({ custom: '{{#label}} must have at most six decimals' });

/** `atMostSixDecimals` in words, for the document. */
export const SIX_DECIMALS_RULE = { rule: 'At most six decimals.' };

/** An amount of credits on the wire, of either sign. */
export const creditsSchema = numberBetween(-CREDITS_MAX, CREDITS_MAX).custom(atMostSixDecimals).meta(SIX_DECIMALS_RULE);
