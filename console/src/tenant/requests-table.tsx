import { Link } from 'wouter-preact';

import type { paths } from '../../public-api.d.ts';
import { count, credits, duration } from '../ui/format.ts';
import { Badge, Time } from '../ui/parts.tsx';
import { Table } from '../ui/table.tsx';
import type { Column, List } from '../ui/table.tsx';
import type { ComponentChildren } from 'preact';

export type RequestSummary = paths['/requests']['get']['responses'][200]['content']['application/json']['data'][number];

const between = (from: number | null, to: number | null) =>
  from === null || to === null ? <span class="muted">–</span> : duration((to - from) * 1_000);

const COLUMNS: readonly Column<RequestSummary>[] = [
  { title: 'Time', width: 15.5, cell: ({ accepted_at: at }) => <Time at={at} /> },
  {
    title: 'Request',
    width: 15,
    cell: ({ id }) => (
      <Link href={`/requests/${id}`} class="mono clip id" title={id}>
        {id}
      </Link>
    ),
  },
  {
    title: 'Status',
    width: 17,
    cell: ({ status, error_code: code }) => (
      <>
        <Badge>{status}</Badge>
        {code !== null && (
          <code class="muted clip below" title={code}>
            {code}
          </code>
        )}
      </>
    ),
  },
  {
    title: 'Call',
    width: 16.5,
    isMinor: true,
    cell: ({ endpoint, model }) => (
      <span class="number clip" title={endpoint}>
        <code>{endpoint}</code> {model !== null && <span class="muted">{model}</span>}
      </span>
    ),
  },
  {
    title: 'First token',
    right: true,
    width: 10,
    isMinor: true,
    cell: (row) => between(row.accepted_at, row.first_token_at),
  },
  {
    title: 'Duration',
    right: true,
    width: 9.5,
    isMinor: true,
    cell: (row) => between(row.accepted_at, row.status === 'refused' ? null : row.finished_at),
  },
  {
    title: 'Tokens',
    right: true,
    width: 8,
    isMinor: true,
    cell: ({ prompt_tokens: prompt, completion_tokens: completion }) =>
      prompt === null || completion === null ? (
        <span class="muted">–</span>
      ) : (
        <span title={`${count(prompt)} of the prompt, ${count(completion)} of the answer`}>
          {count(prompt + completion)}
        </span>
      ),
  },
  {
    title: 'Credits',
    right: true,
    width: 8.5,
    isMinor: true,
    cell: ({ credits: charged }) =>
      charged === null ? <span class="muted">–</span> : <span class="money">{credits(charged)}</span>,
  },
];

export const RequestsTable = ({ list, empty }: { list: List<RequestSummary>; empty: ComponentChildren }) => (
  <Table label="requests" columns={COLUMNS} list={list} keyOf={({ id }) => id} empty={empty} />
);
