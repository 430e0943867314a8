import { useQuery } from '@tanstack/preact-query';

import type { paths } from '../../public-api.d.ts';
import { ok } from '../shell/api.ts';
import type { Series } from '../ui/chart.tsx';
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

/** Groups beyond these are one. */
const SERIES_MAX = 5;

/** Buckets as series, the largest first; what has no name of its own is the sum. */
export function toSeries(
  buckets: readonly Bucket[],
  group: Group | undefined,
  measure: Measure,
): { moments: number[]; series: Series[] } {
  const totals = new Map<string, number>();
  const nameOf = (result: Result) => (group === undefined ? 'All' : (result[group] ?? 'none'));
  for (const { results } of buckets)
    for (const result of results) totals.set(nameOf(result), (totals.get(nameOf(result)) ?? 0) + result[measure]);
  const names = [...totals].sort(([, a], [, b]) => b - a).map(([name]) => name);
  const shown = names.slice(0, SERIES_MAX);
  const labels = names.length > SERIES_MAX ? [...shown, 'others'] : shown;
  const sum = (results: readonly Result[], label: string) =>
    results
      .filter((result) => (label === 'others' ? !shown.includes(nameOf(result)) : nameOf(result) === label))
      .reduce((total, result) => total + result[measure], 0);
  return {
    moments: buckets.map(({ start_time: start }) => start),
    series: (labels.length === 0 ? ['All'] : labels).map((label) => ({
      label,
      values: buckets.map(({ results }) => sum(results, label)),
    })),
  };
}
