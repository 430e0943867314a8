import { useMemo } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { useParams } from '../shell/router.ts';
import { Chart, toSeries } from '../ui/chart.tsx';
import { download } from '../ui/download.ts';
import { Select } from '../ui/field.tsx';
import { compact, count, credits, localDay } from '../ui/format.ts';
import { Button, Card, Empty, ErrorBox, PageHead, Stat } from '../ui/parts.tsx';
import { Table, wholeList } from '../ui/table.tsx';
import { curl } from './api.ts';
import { entityPath } from './entities.tsx';
import { nameIn, useUsage } from './usage-data.ts';
import type { Bucket, Group, Measure, Result } from './usage-data.ts';

const DAY = 86_400;
const RANGES = {
  '1d': { days: 1, width: '1h' },
  '7d': { days: 7, width: '1h' },
  '30d': { days: 30, width: '1d' },
  '90d': { days: 90, width: '1d' },
} as const;
const GROUPS: readonly (readonly [string, string])[] = [
  ['model', 'Tier'],
  ['key_id', 'Key'],
  ['entity_id', 'Entity'],
  ['endpoint', 'Endpoint'],
  ['mode', 'Mode'],
];
const MEASURES: readonly (readonly [Measure, string])[] = [
  ['total_tokens', 'Tokens'],
  ['requests', 'Requests'],
  ['credits', 'Credits'],
];

interface Sum extends Pick<Result, Measure> {
  name: string;
}

function sumsOf(buckets: readonly Bucket[], group: Group): Sum[] {
  const sums = new Map<string, Sum>();
  for (const result of buckets.flatMap(({ results }) => results)) {
    const name = result[group] ?? 'none';
    const sum = sums.get(name) ?? {
      name,
      requests: 0,
      prompt_tokens: 0,
      completion_tokens: 0,
      total_tokens: 0,
      credits: 0,
    };
    for (const field of ['requests', 'prompt_tokens', 'completion_tokens', 'total_tokens', 'credits'] as const)
      sum[field] += result[field];
    sums.set(name, sum);
  }
  return [...sums.values()].sort((a, b) => b.total_tokens - a.total_tokens);
}

/** A cell of a spreadsheet: quoted, and never read as a formula. */
const cell = (value: string | number) =>
  `"${String(value)
    .replace(/^[=+\-@\t]/, "'$&")
    .replaceAll('"', '""')}"`;

function toCsv(buckets: readonly Bucket[], group: Group): string {
  const head = ['start_time', group, 'requests', 'prompt_tokens', 'completion_tokens', 'total_tokens', 'credits'];
  const rows = buckets.flatMap(({ start_time: start, results }) =>
    results.map((result) => [
      new Date(start * 1_000).toISOString(),
      result[group] ?? '',
      ...(['requests', 'prompt_tokens', 'completion_tokens', 'total_tokens', 'credits'] as const).map(
        (name) => result[name],
      ),
    ]),
  );
  return [head, ...rows].map((row) => row.map(cell).join(',')).join('\r\n');
}

function nameCell(group: Group, name: string) {
  if (group === 'key_id' && name !== 'none') return <Link href={`/keys/${name}`}>{name}</Link>;
  if (group === 'entity_id' && name !== 'none') return <Link href={entityPath(name)}>{name}</Link>;
  return name;
}

export function Usage() {
  const [params, change] = useParams();
  const range = Object.entries(RANGES).find(([name]) => name === params['range'])?.[1] ?? RANGES['30d'];
  const group = (GROUPS.find(([name]) => name === params['group'])?.[0] ?? 'model') as Group;
  const measure = MEASURES.find(([name]) => name === params['measure'])?.[0] ?? 'total_tokens';
  const step = range.width === '1h' ? 3_600 : DAY;
  const start = (Math.floor(Date.now() / 1_000 / step) + 1) * step - range.days * DAY;
  const usage = useUsage({
    start_time: start,
    bucket_width: range.width,
    limit: range.width === '1h' ? 168 : 366,
    group_by: [group],
  });
  const { data } = usage;
  const { moments, series } = useMemo(
    () => toSeries(data ?? [], nameIn(group), (result) => result[measure]),
    [data, group, measure],
  );
  const sums = useMemo(() => data && sumsOf(data, group), [data, group]);
  const total = (field: Measure) => sums?.reduce((all, sum) => all + sum[field], 0);
  const set = (name: string) => (event: { currentTarget: { value: string } }) => {
    change({ [name]: event.currentTarget.value });
  };
  const show = (field: Measure, format: (value: number) => string) => {
    const value = total(field);
    return value === undefined ? undefined : format(value);
  };
  return (
    <>
      <PageHead title="Usage" about="What was booked. Buckets are UTC.">
        <Button
          disabled={data === undefined}
          onClick={() => {
            download(`usage-by-${group}.csv`, 'text/csv', toCsv(data ?? [], group));
          }}
        >
          Export CSV
        </Button>
      </PageHead>
      <div class="filters">
        <Select
          label="Range"
          value={params['range'] ?? '30d'}
          onChange={set('range')}
          options={[
            ['1d', 'Last 24 hours'],
            ['7d', 'Last 7 days'],
            ['30d', 'Last 30 days'],
            ['90d', 'Last 90 days'],
          ]}
        />
        <Select label="Group by" value={group} onChange={set('group')} options={GROUPS} />
        <Select label="Measure" value={measure} onChange={set('measure')} options={MEASURES} />
      </div>
      <div class="stats">
        <Stat label="Requests" value={show('requests', count)} />
        <Stat label="Prompt tokens" value={show('prompt_tokens', compact)} />
        <Stat label="Completion tokens" value={show('completion_tokens', compact)} />
        <Stat label="Credits" value={show('credits', credits)} tone="money" />
      </div>
      {usage.error !== null && <ErrorBox error={usage.error} retry={() => void usage.refetch()} />}
      <Card
        bare
        title={`${MEASURES.find(([name]) => name === measure)?.[1] ?? ''} by ${range.width === '1h' ? 'hour' : 'day'}`}
      >
        <Chart
          label={`From ${localDay(start)}: ${compact(total(measure) ?? 0)} in all.`}
          moments={moments}
          series={series}
        />
      </Card>
      <Card bare title={`By ${GROUPS.find(([name]) => name === group)?.[1].toLowerCase() ?? ''}`}>
        <Table<Sum>
          label="usage"
          list={wholeList(sums, usage)}
          keyOf={({ name }) => name}
          columns={[
            {
              title: GROUPS.find(([name]) => name === group)?.[1] ?? '',
              cell: ({ name }) => <span class="clip">{nameCell(group, name)}</span>,
            },
            { title: 'Requests', right: true, cell: ({ requests }) => count(requests) },
            { title: 'Prompt', right: true, cell: ({ prompt_tokens: tokens }) => count(tokens) },
            { title: 'Completion', right: true, cell: ({ completion_tokens: tokens }) => count(tokens) },
            { title: 'Tokens', right: true, cell: ({ total_tokens: tokens }) => count(tokens) },
            { title: 'Credits', right: true, cell: (sum) => <span class="money">{credits(sum.credits)}</span> },
          ]}
          empty={
            <Empty
              title="No usage in this time"
              call={curl('/chat', { messages: [{ role: 'user', content: 'Hello' }] })}
            >
              Each request that ends with text is booked here.
            </Empty>
          }
        />
      </Card>
    </>
  );
}
