import { useQuery } from '@tanstack/preact-query';

import { ok } from '../shell/api.ts';
import { useParams } from '../shell/router.ts';
import { Select } from '../ui/field.tsx';
import { count, cost, credits } from '../ui/format.ts';
import { Card, Empty, PageHead } from '../ui/parts.tsx';
import { Table, wholeList } from '../ui/table.tsx';
import type { Column } from '../ui/table.tsx';
import { api } from './api.ts';
import type { Schemas } from './api.ts';

type Row = Schemas['MarginResult'];

const GROUPS = ['tenant_id', 'tier', 'provider', 'model'] as const;
const NAMES = { tenant_id: 'Tenant', tier: 'Tier', provider: 'Provider', model: 'Model' } as const;

const amount = (value: number | null, currency: string | null) =>
  value === null ? <span class="muted">unknown</span> : `${cost(value)} ${currency?.toUpperCase() ?? ''}`;

/** The results of all days together: a group may stand once for each currency. */
function sumUp(results: readonly Row[], group: (typeof GROUPS)[number]): Row[] {
  const sums = new Map<string, Row>();
  const add = (a: number | null, b: number | null) => (a === null || b === null ? null : a + b);
  for (const row of results) {
    const name = JSON.stringify([row[group], row.currency, row.cost === null]);
    const sum = sums.get(name);
    if (sum === undefined) {
      sums.set(name, row);
      continue;
    }
    sums.set(name, {
      ...sum,
      requests: sum.requests + row.requests,
      total_tokens: sum.total_tokens + row.total_tokens,
      credits: sum.credits + row.credits,
      cost: add(sum.cost, row.cost),
      price: add(sum.price, row.price),
      margin: add(sum.margin, row.margin),
    });
  }
  return [...sums.values()].sort((a, b) => b.credits - a.credits);
}

/** What providers cost, what tenants paid, and what is left, this month. */
export function Money() {
  const [{ by }, change] = useParams();
  const group = GROUPS.find((each) => each === by) ?? 'tenant_id';
  const query = useQuery({
    queryKey: ['margin', group],
    queryFn: () => ok(api.GET('/margin', { params: { query: { group_by: [group], bucket_width: '1d' } } })),
  });
  const rows =
    query.data &&
    sumUp(
      query.data.data.flatMap(({ results }) => results),
      group,
    );
  const columns: Column<Row>[] = [
    {
      title: NAMES[group],
      cell: (row) => (
        <>
          <span class="mono">{row[group] ?? 'none'}</span>
          {row.cost === null && <span class="muted"> · cost unknown</span>}
        </>
      ),
    },
    { title: 'Requests', right: true, cell: ({ requests }) => count(requests) },
    { title: 'Tokens', right: true, cell: ({ total_tokens: tokens }) => count(tokens) },
    { title: 'Credits', right: true, cell: ({ credits: charged }) => credits(charged) },
    { title: 'Cost', right: true, cell: ({ cost: paid, currency }) => amount(paid, currency) },
    { title: 'Price', right: true, cell: ({ price, price_currency: currency }) => amount(price, currency) },
    { title: 'Margin', right: true, cell: ({ margin, currency }) => amount(margin, currency) },
  ];
  return (
    <>
      <PageHead
        title="Cost and margin"
        about="This month: what provider calls cost, and what tenants paid for them. Without a target’s cost it is unknown, never zero."
      />
      <div class="filters">
        <Select
          label="By"
          options={GROUPS.map((each) => [each, NAMES[each]] as const)}
          value={group}
          onChange={(event: Event) => {
            change({ by: (event.target as HTMLSelectElement).value }, { replace: true });
          }}
        />
      </div>
      <Card bare>
        <Table
          label="Cost and margin"
          columns={columns}
          list={wholeList(rows, query)}
          keyOf={(row) => JSON.stringify([row[group], row.currency, row.cost === null])}
          empty={<Empty title="No request was answered this month." />}
        />
      </Card>
    </>
  );
}
