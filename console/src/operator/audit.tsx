import { ok } from '../shell/api.ts';
import { Badge, Card, Empty, PageHead, Time } from '../ui/parts.tsx';
import { Table, useList } from '../ui/table.tsx';
import type { Column } from '../ui/table.tsx';
import { api } from './api.ts';
import type { Schemas } from './api.ts';

type Row = Schemas['AdminAuditLogEntry'];

const COLUMNS: Column<Row>[] = [
  { title: 'When', width: 15.5, cell: ({ created_at: at }) => <Time at={at} /> },
  { title: 'Who', width: 9.5, cell: ({ actor }) => <span class="clip">{actor ?? 'nobody known'}</span> },
  {
    title: 'What',
    width: 28.5,
    cell: ({ action, method, path }) =>
      action === 'change' ? (
        <code class="clip" title={`${method} ${path}`}>
          {method} {path.replace('/admin/v1', '')}
        </code>
      ) : (
        <Badge>{action}</Badge>
      ),
  },
  {
    title: 'Target',
    width: 14,
    isMinor: true,
    cell: ({ target }) => (
      <code class="clip id" title={target ?? ''}>
        {target ?? ''}
      </code>
    ),
  },
  {
    title: 'Changed',
    width: 14,
    isMinor: true,
    cell: ({ changes }) => <code class="clip id">{changes === null ? '' : Object.keys(changes).join(', ')}</code>,
  },
  { title: 'Answer', right: true, width: 8, isMinor: true, cell: ({ status }) => status ?? '' },
  { title: 'From', width: 10.5, isMinor: true, cell: ({ address }) => <code class="clip">{address}</code> },
];

/** Who changed what. Secrets never stand in it. */
export function Audit() {
  const list = useList<Row>(['audit'], (query) => ok(api.GET('/audit_log', { params: { query } })));
  return (
    <>
      <PageHead title="Audit log" about="Changes by administrators, sign-ins and refused tokens." />
      <Card bare>
        <Table
          label="Audit log"
          columns={COLUMNS}
          list={list}
          keyOf={({ id }) => id}
          empty={<Empty title="Nothing was changed yet." />}
        />
      </Card>
    </>
  );
}
