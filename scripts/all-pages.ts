import type { components } from './admin-api.d.ts'; // npm run types

interface ListPage {
  data: unknown[];
  has_more: boolean;
  last_id: string | null;
}

/** Reads a list of the API to its end: the first page with the rows of all. */
export async function allPages<Page extends ListPage>(
  read: (query: { limit: number; after?: string }) => Promise<Page>,
): Promise<Page> {
  const limit = 100;
  const first = await read({ limit });
  const data = [...first.data];
  let last = first;
  while (last.has_more && last.last_id !== null) {
    last = await read({ limit, after: last.last_id });
    data.push(...last.data);
  }
  return { ...first, data, has_more: false, last_id: last.last_id };
}

type Replay = components['schemas']['RequestReplay'];

/** Sums up what became of the requests of further pages. */
export function withPage(before: Replay, page: Replay): Replay {
  const skipped = Map.groupBy([...before.skipped_reasons, ...page.skipped_reasons], ({ reason }) => reason);
  const waits = [before, page].map(({ retry_after_seconds: seconds }) => seconds ?? 0);
  return {
    ...page,
    matched: before.matched,
    replayed: before.replayed + page.replayed,
    skipped: before.skipped + page.skipped,
    skipped_reasons: [...skipped].map(([reason, all]) => ({
      reason,
      count: all.reduce((sum, { count }) => sum + count, 0),
    })),
    retry_after_seconds: Math.max(...waits) || null,
    data: [...before.data, ...page.data],
  };
}
