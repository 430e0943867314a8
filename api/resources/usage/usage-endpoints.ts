import { toListPage } from '../../../shared/contracts/list-page.ts';
import { overseenBy } from '../../../shared/contracts/space.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { UsageRepository, UsageSum } from '../../../shared/mongo/accounts/usage-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { defineEndpoint, ok, exampleList, json } from '../../contract/endpoint.ts';
import { TENANT_VIEW, toUsagePage, usageQuery, usageRequestsQuery } from './usage-query.ts';
import type { UsagePage } from './usage-query.ts';
import {
  usageRequestResource,
  toUsageResource,
  toUsageResult,
  tokensByKind,
  usagePageSchema,
} from './usage-resource.ts';

export interface UsageDeps {
  usage: UsageRepository;
  clock: Clock;
}

/** A page with more sums would take up megabytes. */
const RESULTS_MAX = 10_000;

/** The sums of a page, at most RESULTS_MAX. Throws `invalid_request`. */
export async function readUsage(
  usage: UsageRepository,
  space: Parameters<UsageRepository['sums']>[0],
  { pageEndMs: endMs, ...page }: UsagePage,
): Promise<UsageSum[]> {
  const sums = await usage.sums(space, { ...page, endMs, limit: RESULTS_MAX });
  if (sums.length <= RESULTS_MAX) return sums;
  throw new ServiceError(
    'invalid_request',
    `This page has more than ${RESULTS_MAX} results; send a lower \`limit\`, a filter or fewer \`group_by\`.`,
    { param: 'limit' },
  );
}

const getUsage = defineEndpoint({
  method: 'GET',
  path: '/usage',
  scopes: ['usage'],
  tag: 'Usage',
  summary: 'Retrieve usage by time',
  description:
    'By day since the beginning of the month, unless the parameters say otherwise. Unknown parameters are refused.',
  query: usageQuery(TENANT_VIEW),
  answers: { 200: json('A page of buckets, oldest first.', usagePageSchema) },
  examples: {
    this_month: {
      summary: 'This month by day',
      status: 200,
      answer: {
        object: 'page',
        data: [{ object: 'bucket', start_time: 1_795_219_200, end_time: 1_795_305_600, results: [] }],
        has_more: false,
        next_page: null,
      },
    },
    by_model: {
      summary: 'By the hour, grouped by tier and mode',
      query: { bucket_width: '1h', group_by: ['model', 'mode'], limit: 24 },
      status: 200,
      answer: {
        object: 'page',
        data: [
          {
            object: 'bucket',
            start_time: 1_795_219_200,
            end_time: 1_795_222_800,
            results: [
              {
                object: 'usage.result',
                requests: 212,
                prompt_tokens: 1_204,
                completion_tokens: 3_377,
                total_tokens: 4_581,
                ...tokensByKind({}),
                credits: 4_581,
                estimated_requests: 0,
                key_id: null,
                model: 'mobius',
                entity_id: null,
                mode: 'live',
                endpoint: null,
              },
            ],
          },
        ],
        has_more: true,
        next_page: 'MWg6MTc5NTMwNTYwMDAwMA',
      },
    },
  },
  async handle({ principal, query }, { usage, clock }: UsageDeps) {
    const page = toUsagePage(query, TENANT_VIEW, clock.now());
    const sums = await readUsage(usage, overseenBy(principal), page);
    return ok(toUsageResource(page, sums, (sum) => toUsageResult(sum, TENANT_VIEW)));
  },
});

const listUsageRequests = defineEndpoint({
  method: 'GET',
  path: '/usage/requests',
  scopes: ['usage'],
  tag: 'Usage',
  summary: 'List booked requests',
  query: usageRequestsQuery,
  answers: { 200: json('A page of requests.', usageRequestResource.listSchema) },
  examples: {
    live: {
      summary: 'Of live keys',
      query: { mode: ['live'], limit: 20 },
      status: 200,
      answer: exampleList(usageRequestResource.example),
    },
  },
  async handle({ principal, query }, { usage }: UsageDeps) {
    const rows = await usage.requests(overseenBy(principal), query.filter, query.list);
    return ok(toListPage(rows, query.list.limit, usageRequestResource.of));
  },
});

/** Usage of a tenant (docs/spec.md#usage). */
export const usageEndpoints = { getUsage, listUsageRequests };
