import Joi from 'joi';

import type { ListParameters } from '../../../shared/contracts/list-page.ts';
import { TIERS, entityIdSchema } from '../../../shared/contracts/chat-request.ts';
import type { BucketWidth } from '../../../shared/domain/usage/roll-up.ts';
import { BUCKET_WIDTHS, LIMITS, MINUTES_KEPT_DAYS } from './buckets.ts';

/** The names of the dimensions on the wire, which are filters too. */
export const GROUPS = ['key_id', 'model', 'entity_id', 'mode', 'endpoint'] as const;
export type Group = (typeof GROUPS)[number];

/** More would be a query that nobody wrote by hand. */
const FILTER_VALUES_MAX = 100;

/** Parameters of a query are texts; one that is repeated is an array of them. */
function oneOrMore(item: Joi.StringSchema): Joi.ArraySchema {
  return Joi.array().items(item).min(1).max(FILTER_VALUES_MAX);
}

const keyId = Joi.string()
  .pattern(/^key_[0-9A-Za-z]{24}$/)
  .messages({ 'string.pattern.base': '{{#label}} must be the id of an API key' });
const endpoint = Joi.string()
  .pattern(/^[a-z]+(\.[a-z]+)*$/)
  .max(32)
  .messages({ 'string.pattern.base': '{{#label}} must be an endpoint: chat, chat.stream or batch' });
const unixSeconds = Joi.string()
  .pattern(/^\d{1,11}$/)
  .meta({ reads: Joi.number().integer().min(0).max(99_999_999_999) })
  .messages({ 'string.pattern.base': '{{#label}} must be a time in Unix seconds' });
const wholeNumber = Joi.string()
  .pattern(/^[1-9]\d{0,4}$/)
  .meta({ reads: Joi.number().integer().min(1).max(99_999) })
  .messages({ 'string.pattern.base': '{{#label}} must be a whole number from 1' });

/** Filters; each may be repeated. */
const filters = {
  key_id: oneOrMore(keyId).description('Only of these keys; may be repeated, like every filter.'),
  model: oneOrMore(Joi.string().valid(...TIERS)).description('Only of these tiers.'),
  entity_id: oneOrMore(entityIdSchema).description('Only with these entities.'),
  mode: oneOrMore(Joi.string().valid('live', 'test')).description('Only of live or of test keys.'),
  endpoint: oneOrMore(endpoint).description('Only of these endpoints: `chat`, `chat.stream`, `batch`.'),
};

/** What `usageQuerySchema` lets through. */
export type UsageParameters = Partial<Record<Group, string[]>> & {
  start_time?: string;
  end_time?: string;
  bucket_width?: BucketWidth;
  group_by?: Group[];
  limit?: string;
  page?: string;
};

/** `GET /usage`. */
export const usageQuerySchema = Joi.object<UsageParameters, true>({
  start_time: unixSeconds.description(
    "From the bucket that this falls into, in Unix seconds; the start of end_time's month by default.",
  ),
  end_time: unixSeconds.description('Up to the bucket that this ends in, in Unix seconds; now by default.'),
  bucket_width: Joi.string()
    .valid(...BUCKET_WIDTHS)
    .description(`\`1d\` by default. Minutes are kept for ${MINUTES_KEPT_DAYS} days.`),
  group_by: Joi.array()
    .items(Joi.string().valid(...GROUPS))
    .description('Group the sums by these: separated by commas, or repeated.'),
  limit: wholeNumber.description(
    `Buckets on a page: by default ${LIMITS['1d'].usual} days, ${LIMITS['1h'].usual} hours or ${LIMITS['1m'].usual} minutes.`,
  ),
  page: Joi.string().max(64).description('`next_page` of the page before, with the same other parameters.'),
  ...filters,
});

/** `GET /usage/requests`: the filters beside the parameters of every list. */
export const usageRequestsQuerySchema = Joi.object<Partial<Record<Group, string[]>> & ListParameters>({
  limit: Joi.any(),
  after: Joi.any(),
  order: Joi.any(),
  key_id: filters.key_id,
  entity_id: filters.entity_id,
  model: filters.model,
  mode: filters.mode,
});
