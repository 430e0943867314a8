import { useQuery } from '@tanstack/preact-query';

import type { paths } from '../../public-api.d.ts';
import { ok } from '../shell/api.ts';
import { api } from './api.ts';

type UsageQuery = NonNullable<paths['/usage']['get']['parameters']['query']>;
export type Bucket = paths['/usage']['get']['responses'][200]['content']['application/json']['data'][number];
export type Result = Bucket['results'][number];
export type Measure = 'requests' | 'prompt_tokens' | 'completion_tokens' | 'total_tokens' | 'credits';
export type Group = NonNullable<UsageQuery['group_by']>[number];

/** All pages of a range, at most as many as a chart can show. */
const PAGES_MAX = 8;

async function readAll(query: UsageQuery): Promise<Bucket[]> {
  const buckets: Bucket[] = [];
  let page: string | undefined;
  for (let at = 0; at < PAGES_MAX; at += 1) {
    const answer = await ok(
      api.GET('/usage', { params: { query: { ...query, ...(page === undefined ? {} : { page }) } } }),
    );
    buckets.push(...answer.data);
    if (answer.next_page === null) break;
    page = answer.next_page;
  }
  return buckets;
}

export const useUsage = (query: UsageQuery) =>
  useQuery({
    queryKey: ['usage', query],
    queryFn: () => readAll(query),
    refetchInterval: 30_000,
    placeholderData: (before) => before,
  });

/** The group of a result; what has no name of its own is the sum. */
export const nameIn =
  (group: Group | undefined) =>
  (result: Result): string =>
    group === undefined ? 'All' : (result[group] ?? 'none');
