import { useQuery } from '@tanstack/preact-query';
import type { UseQueryResult } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';

import { useParams } from '../shell/router.ts';
import { Button, ErrorBox } from './parts.tsx';

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ComponentChildren;
  /** Numbers stand to the right. */
  right?: boolean;
  /** Left out where there is no room: on a phone. */
  isMinor?: boolean;
  /** Its part of the width, in percent; with it on all columns none moves when other rows come. */
  width?: number;
}

/** What every list of the API answers. */
export interface ListPage<Row> {
  data: Row[];
  has_more: boolean;
  first_id: string | null;
  last_id: string | null;
}
export interface ListQuery {
  limit: number;
  after?: string;
  order?: 'asc' | 'desc';
}

const ROWS = 25;

/**
 * One page of a list, newest first. The place in the list stands in the address (`after`, `before`), so a page can be linked
 * to. The page before is read from its end: in the other order, and turned around.
 */
export function useList<Row>(
  key: readonly unknown[],
  read: (query: ListQuery) => Promise<ListPage<Row>>,
  options: { refetchInterval?: number | false; enabled?: boolean } = {},
) {
  const [{ after, before }] = useParams();
  const query = useQuery({
    queryKey: [...key, { after, before }],
    queryFn: async () => {
      if (before === undefined) return read({ limit: ROWS, ...(after === undefined ? {} : { after }) });
      const page = await read({ limit: ROWS, after: before, order: 'asc' });
      return { ...page, data: page.data.toReversed(), first_id: page.last_id, last_id: page.first_id };
    },
    placeholderData: (previous) => previous,
    ...options,
  });
  const page = query.data;
  return {
    query,
    rows: page?.data,
    newer: (before === undefined ? after !== undefined : page?.has_more === true)
      ? (page?.first_id ?? undefined)
      : undefined,
    older: before !== undefined || page?.has_more === true ? (page?.last_id ?? undefined) : undefined,
  };
}

export type List<Row> = Pick<ReturnType<typeof useList<Row>>, 'rows' | 'newer' | 'older'> & {
  query: Pick<UseQueryResult, 'error' | 'refetch'>;
};

const classOf = <Row,>({ right, isMinor }: Column<Row>): string | undefined =>
  [right === true ? 'right' : '', isMinor === true ? 'minor' : ''].join(' ').trim() || undefined;

/** A page of rows. While it is fetched the first time, its place is kept by as many empty rows as there may be. */
export function Table<Row>({
  label,
  columns,
  list,
  keyOf,
  empty,
}: {
  label: string;
  columns: readonly Column<Row>[];
  list: List<Row>;
  keyOf: (row: Row) => string;
  empty: ComponentChildren;
}) {
  const [, change] = useParams();
  const { rows, newer, older, query } = list;
  if (query.error !== null && rows === undefined)
    return (
      <div class="empty">
        <ErrorBox error={query.error} retry={() => void query.refetch()} />
      </div>
    );
  if (rows?.length === 0 && newer === undefined && older === undefined) return <>{empty}</>;
  return (
    <>
      <div class="table-wrap" tabIndex={0} role="region" aria-label={label}>
        <table
          class="table"
          data-fixed={columns.every(({ width }) => width !== undefined)}
          aria-busy={rows === undefined}
        >
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  key={column.title}
                  scope="col"
                  class={classOf(column)}
                  style={column.width === undefined ? undefined : { width: `${column.width}%` }}
                >
                  {column.title === '' ? <span class="visually-hidden">Actions</span> : column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows === undefined
              ? Array.from({ length: 6 }, (_, at) => (
                  <tr key={at}>
                    {columns.map((column) => (
                      <td key={column.title} class={classOf(column)}>
                        <span class="skeleton" />
                      </td>
                    ))}
                  </tr>
                ))
              : rows.map((row) => (
                  <tr key={keyOf(row)}>
                    {columns.map((column) => (
                      <td key={column.title} class={classOf(column)}>
                        {column.cell(row)}
                      </td>
                    ))}
                  </tr>
                ))}
          </tbody>
        </table>
      </div>
      {(newer !== undefined || older !== undefined) && (
        <nav class="table-foot" aria-label={`Pages of ${label}`}>
          <span>{rows?.length ?? 0} rows</span>
          <span class="row">
            <Button
              disabled={newer === undefined}
              onClick={() => {
                change({ before: newer, after: undefined });
              }}
            >
              Newer
            </Button>
            <Button
              disabled={older === undefined}
              onClick={() => {
                change({ after: older, before: undefined });
              }}
            >
              Older
            </Button>
          </span>
        </nav>
      )}
    </>
  );
}

/** A whole list that is no page of the API, for `Table`. */
export const wholeList = <Row,>(rows: Row[] | undefined, query: List<Row>['query']): List<Row> => ({
  rows,
  query,
  newer: undefined,
  older: undefined,
});
