import Joi from 'joi';

import { BUCKET_MS, MINUTES_KEPT_MS } from '../../../shared/domain/roll-up.ts';
import type { BucketWidth } from '../../../shared/domain/roll-up.ts';
import type { ListParameters, ListQuery } from '../../../shared/contracts/list-page.ts';
import { ROUTED_TIERS, entityIdSchema } from '../../../shared/contracts/chat-request.ts';
import { listQuerySchema, parseListQuery } from '../../../shared/contracts/list-page.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { UsageDimension, UsageFilter } from '../../../shared/mongo/accounts/usage-repository.ts';
import type { QueryRule } from '../../contract/endpoint.ts';
import { ONCE, givenId } from '../../contract/json-schema.ts';

/** Buckets per page: as in OpenAI's API, except that a page of days holds a whole month, the default range. */
const LIMITS: Record<BucketWidth, { usual: number; max: number }> = {
  '1m': { usual: 60, max: 1_440 },
  '1h': { usual: 24, max: 168 },
  '1d': { usual: 31, max: 366 },
};

const MINUTES_KEPT_DAYS = MINUTES_KEPT_MS / BUCKET_MS['1d'];

const BUCKET_WIDTHS = Object.keys(BUCKET_MS) as BucketWidth[];

/** The start of the bucket that contains a time; milliseconds since the epoch. */
function bucketStart(timeMs: number, width: BucketWidth): number {
  return Math.floor(timeMs / BUCKET_MS[width]) * BUCKET_MS[width];
}

/** The start of the first bucket that lies wholly at or after a time. */
function bucketEnd(timeMs: number, width: BucketWidth): number {
  return Math.ceil(timeMs / BUCKET_MS[width]) * BUCKET_MS[width];
}

/** The start of the calendar month (UTC) that contains a time. */
function monthStart(timeMs: number): number {
  const date = new Date(timeMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

/** Groups and filters of usage, by its names on the wire. */
export interface UsageView {
  dimensions: Readonly<Record<string, UsageDimension>>;
  filters: Readonly<Record<string, Joi.ArraySchema>>;
}

/** Far more than a handwritten query has. */
const FILTER_VALUES_MAX = 100;

/** Query parameters are strings; a repeated one is an array of strings. */
export function oneOrMore(item: Joi.StringSchema): Joi.ArraySchema {
  return Joi.array().items(item).min(1).max(FILTER_VALUES_MAX);
}

const endpoint = Joi.string()
  .pattern(/^[a-z]+(\.[a-z]+)*$/)
  .max(32)
  .messages({ 'string.pattern.base': '{{#label}} must be an endpoint: chat, chat.stream, batch or embeddings' });
const unixSeconds = Joi.string()
  .pattern(/^\d{1,11}$/)
  .meta({ reads: { type: 'integer', minimum: 0, maximum: 99_999_999_999 } })
  .messages({ 'string.pattern.base': '{{#label}} must be a time in Unix seconds' });
const wholeNumber = Joi.string()
  .pattern(/^[1-9]\d{0,4}$/)
  .meta({ reads: { type: 'integer', minimum: 1, maximum: 99_999 } })
  .messages({
    'string.pattern.base': `{{#label}} must be a whole number from 1 to ${LIMITS['1d'].max} days, ${LIMITS['1h'].max} hours or ${LIMITS['1m'].max} minutes`,
  });

/** The filters of all views; each may be repeated. */
export const usageFilters = {
  key_id: oneOrMore(givenId('key', 'an API key')).description(
    'Only of these keys; may be repeated, like every filter.',
  ),
  model: oneOrMore(Joi.string().valid(...ROUTED_TIERS)).description('Only of these tiers.'),
  entity_id: oneOrMore(entityIdSchema).description('Only with these entities.'),
  mode: oneOrMore(Joi.string().valid('live', 'test')).description('Only of live or of test keys.'),
  endpoint: oneOrMore(endpoint).description('Only of these endpoints: `chat`, `chat.stream`, `batch`.'),
};

export const TENANT_VIEW = {
  dimensions: { key_id: 'keyId', model: 'tier', entity_id: 'entityId', mode: 'mode', endpoint: 'endpoint' },
  filters: usageFilters,
} as const satisfies UsageView;

/** The parameters of a usage query as they come; filters are read by `filterOf`. */
export interface UsageParameters {
  start_time?: string;
  end_time?: string;
  bucket_width?: BucketWidth;
  group_by?: string[];
  limit?: string;
  page?: string;
}
type Filters = Readonly<Partial<Record<string, unknown>>>;

const usageParameters = {
  start_time: unixSeconds.description(
    "From the bucket that this falls into, in Unix seconds; the start of end_time's month by default.",
  ),
  end_time: unixSeconds.description('Up to the bucket that this ends in, in Unix seconds; now by default.'),
  bucket_width: Joi.string()
    .valid(...BUCKET_WIDTHS)
    .description(`\`1d\` by default. Minutes are kept for ${MINUTES_KEPT_DAYS} days.`),
  limit: wholeNumber.description(
    `Buckets on a page: by default ${LIMITS['1d'].usual} days, ${LIMITS['1h'].usual} hours or ${LIMITS['1m'].usual} minutes.`,
  ),
  page: Joi.string().max(64).description('`next_page` of the page before, with the same other parameters.'),
};

const schemaOf = ({ dimensions, filters }: UsageView) =>
  Joi.object<UsageParameters>({
    ...usageParameters,
    group_by: Joi.array()
      .items(Joi.string().valid(...Object.keys(dimensions)))
      .description('Group the sums by these: separated by commas, or repeated.'),
    ...filters,
  }).messages(ONCE);

const usageRequestsQuerySchema = Joi.object<ListParameters & Filters>({
  limit: Joi.any(),
  after: Joi.any(),
  order: Joi.any(),
  key_id: usageFilters.key_id,
  entity_id: usageFilters.entity_id,
  model: usageFilters.model,
  mode: usageFilters.mode,
});

/** A page of `GET /usage`; times in milliseconds since the epoch. */
export interface UsagePage {
  width: BucketWidth;
  /** The start of the page's first bucket, the end of its last one, and the end of the whole range. */
  startMs: number;
  pageEndMs: number;
  endMs: number;
  groupBy: UsageDimension[];
  filter: UsageFilter;
}

function refuse(param: string, sentence: string): never {
  throw new ServiceError('invalid_request', sentence, { param });
}

/** Turns filters and groups into arrays. Only groups are split at commas, because filter values may contain commas. */
function withArrays(query: Readonly<Record<string, unknown>>, { dimensions }: UsageView): Record<string, unknown> {
  const input: Record<string, unknown> = { ...query };
  for (const name of Object.keys(dimensions)) if (typeof input[name] === 'string') input[name] = [input[name]];
  const groupBy = input['group_by'];
  if (groupBy !== undefined)
    input['group_by'] = [groupBy]
      .flat()
      .flatMap((part: unknown) => (typeof part === 'string' ? part.split(',') : [part]));
  return input;
}

function filterOf(query: Filters, { dimensions }: UsageView): UsageFilter {
  const given = Object.entries(dimensions).filter(([name]) => query[name] !== undefined);
  // Only arrays of strings have passed the schema.
  return Object.fromEntries(given.map(([name, dimension]) => [dimension, query[name] as string[]]));
}

function limitOf({ limit }: UsageParameters, width: BucketWidth): number {
  const { usual, max } = LIMITS[width];
  if (limit === undefined) return usual;
  return Number(limit) <= max
    ? Number(limit)
    : refuse('limit', `\`limit\` must be at most ${max} buckets of ${width}.`);
}

function rangeOf(query: UsageParameters, width: BucketWidth, now: number): { startMs: number; endMs: number } {
  const end = query.end_time === undefined ? now : Number(query.end_time) * 1000;
  const start = query.start_time === undefined ? monthStart(Math.max(0, end - 1)) : Number(query.start_time) * 1000;
  if (start >= end) {
    if (query.end_time === undefined)
      refuse('start_time', '`start_time` must be earlier than `end_time`, which is now by default.');
    refuse('end_time', '`end_time` must be later than `start_time`.');
  }
  if (width === '1m' && start < now - MINUTES_KEPT_MS) {
    refuse(
      'start_time',
      `Usage by the minute is kept for ${MINUTES_KEPT_DAYS} days; send a later \`start_time\`, or \`bucket_width\` 1h.`,
    );
  }
  // Buckets that have not begun have no figures yet.
  const lastEnd = bucketStart(now, width) + BUCKET_MS[width];
  return { startMs: bucketStart(start, width), endMs: Math.min(bucketEnd(end, width), lastEnd) };
}

export function toPageCursor(width: BucketWidth, startMs: number): string {
  return Buffer.from(`${width}:${startMs}`).toString('base64url');
}

function placeOf(page: string, width: BucketWidth, startMs: number, endMs: number): number {
  const [, givenWidth, place] = /^(1[mhd]):(\d{1,15})$/.exec(Buffer.from(page, 'base64url').toString()) ?? [];
  const time = Number(place);
  const isOwn = givenWidth === width && time >= startMs && time < endMs && bucketStart(time, width) === time;
  return isOwn ? time : refuse('page', '`page` must be the `next_page` of the same query.');
}

/** The query of usage by time; the times are interpreted by `toUsagePage`, which knows the current time. */
export function usageQuery(view: UsageView): QueryRule<UsageParameters> {
  const schema = schemaOf(view);
  return {
    schemas: [schema],
    read(query) {
      const input = withArrays(query, view);
      checkAgainst(schema, input);
      return input;
    },
  };
}

/** Throws `invalid_request`. */
export function toUsagePage(query: UsageParameters, view: UsageView, now: number): UsagePage {
  const width = query.bucket_width ?? '1d';
  const { startMs, endMs } = rangeOf(query, width, now);
  const from = query.page === undefined ? startMs : placeOf(query.page, width, startMs, endMs);
  return {
    width,
    startMs: from,
    pageEndMs: Math.min(endMs, from + limitOf(query, width) * BUCKET_MS[width]),
    endMs,
    groupBy: [...new Set(query.group_by)].flatMap((name) => view.dimensions[name] ?? []),
    filter: filterOf({ ...query }, view),
  };
}

/** `GET /usage/requests`: the filters, plus the parameters of every list. */
export const usageRequestsQuery: QueryRule<{ list: ListQuery; filter: UsageFilter }> = {
  schemas: [usageRequestsQuerySchema, listQuerySchema],
  read(query) {
    const list = parseListQuery(query);
    const input = withArrays(query, TENANT_VIEW);
    checkAgainst(usageRequestsQuerySchema, input);
    return { list, filter: filterOf(input, TENANT_VIEW) };
  },
};
