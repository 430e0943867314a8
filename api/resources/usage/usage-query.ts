import { listQuerySchema, parseListQuery } from '../../../shared/contracts/list-page.ts';
import type { ListQuery } from '../../../shared/contracts/list-page.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { BUCKET_MS, MINUTES_KEPT_MS } from '../../../shared/domain/usage/roll-up.ts';
import type { BucketWidth } from '../../../shared/domain/usage/roll-up.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { UsageDimension, UsageFilter } from '../../../shared/infra/mongo/accounts/usage-repository.ts';
import type { QueryRule } from '../../contract/operation.ts';
import { bucketEnd, bucketStart, LIMITS, MINUTES_KEPT_DAYS, monthStart } from './buckets.ts';
import { GROUPS, usageQuerySchema, usageRequestsQuerySchema } from './usage-filters.ts';
import type { Group, UsageParameters } from './usage-filters.ts';

/** A page of `GET /usage`; times in milliseconds since the epoch. */
export interface UsagePage {
  width: BucketWidth;
  /** The first bucket of the page, the end of its last one, and the end of all that was asked for. */
  startMs: number;
  pageEndMs: number;
  endMs: number;
  groupBy: Group[];
  filter: UsageFilter;
}

export const DIMENSIONS: Record<Group, UsageDimension> = {
  key_id: 'keyId',
  model: 'tier',
  entity_id: 'entityId',
  mode: 'mode',
  endpoint: 'endpoint',
};

function refuse(param: string, sentence: string): never {
  throw new ServiceError('invalid_request', sentence, { param });
}

/** Filters may be repeated; their values may have commas, the names of the groups have none. */
function withArrays(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const input: Record<string, unknown> = { ...query };
  for (const name of GROUPS) if (typeof input[name] === 'string') input[name] = [input[name]];
  const groupBy = input['group_by'];
  if (groupBy !== undefined)
    input['group_by'] = [groupBy]
      .flat()
      .flatMap((part: unknown) => (typeof part === 'string' ? part.split(',') : [part]));
  return input;
}

function filterOf(query: UsageParameters): UsageFilter {
  const given = GROUPS.filter((name) => query[name] !== undefined);
  return Object.fromEntries(given.map((name) => [DIMENSIONS[name], query[name]]));
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
  if (start >= end) refuse('end_time', '`end_time` must be later than `start_time`.');
  if (width === '1m' && start < now - MINUTES_KEPT_MS) {
    refuse(
      'start_time',
      `Usage by the minute is kept for ${MINUTES_KEPT_DAYS} days; send a later \`start_time\`, or \`bucket_width\` 1h.`,
    );
  }
  // Nothing is known of buckets that have not begun.
  const lastEnd = bucketStart(now, width) + BUCKET_MS[width];
  return { startMs: bucketStart(start, width), endMs: Math.min(bucketEnd(end, width), lastEnd) };
}

/** The cursor that stands for the bucket with which a page begins. */
export function toPageCursor(width: BucketWidth, startMs: number): string {
  return Buffer.from(`${width}:${startMs}`).toString('base64url');
}

function placeOf(page: string, width: BucketWidth, startMs: number, endMs: number): number {
  const [, givenWidth, place] = /^(1[mhd]):(\d{1,15})$/.exec(Buffer.from(page, 'base64url').toString()) ?? [];
  const time = Number(place);
  const isOwn = givenWidth === width && time >= startMs && time < endMs && bucketStart(time, width) === time;
  return isOwn ? time : refuse('page', '`page` must be the `next_page` of the same query.');
}

/** `GET /usage`; times are read by `toUsagePage`, which knows what time it is. */
export const usageQuery: QueryRule<UsageParameters> = {
  schemas: [usageQuerySchema],
  read(query) {
    const input = withArrays(query);
    checkAgainst(usageQuerySchema, input);
    return input;
  },
};

/** Throws `invalid_request`. */
export function toUsagePage(query: UsageParameters, now: number): UsagePage {
  const width = query.bucket_width ?? '1d';
  const { startMs, endMs } = rangeOf(query, width, now);
  const from = query.page === undefined ? startMs : placeOf(query.page, width, startMs, endMs);
  return {
    width,
    startMs: from,
    pageEndMs: Math.min(endMs, from + limitOf(query, width) * BUCKET_MS[width]),
    endMs,
    groupBy: [...new Set(query.group_by)],
    filter: filterOf(query),
  };
}

/** `GET /usage/requests`: the filters beside the parameters of every list. */
export const usageRequestsQuery: QueryRule<{ list: ListQuery; filter: UsageFilter }> = {
  schemas: [usageRequestsQuerySchema, listQuerySchema],
  read(query) {
    const list = parseListQuery(query);
    const input = withArrays(query);
    checkAgainst(usageRequestsQuerySchema, input);
    return { list, filter: filterOf(input) };
  },
};
