import { useQuery } from '@tanstack/preact-query';
import { useMemo } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { allPages } from '../../../scripts/all-pages.ts';
import { ok } from '../shell/api.ts';
import { Chart, toSeries } from '../ui/chart.tsx';
import { compact, count, duration, share } from '../ui/format.ts';
import { Badge, Button, Card, Empty, ErrorBox, PageHead, Stat, useAct } from '../ui/parts.tsx';
import { Table, wholeList } from '../ui/table.tsx';
import type { Column } from '../ui/table.tsx';
import { toast } from '../ui/toast.tsx';
import { LIVE, api, useLatest, useMayWrite, useProviders } from './api.ts';
import type { Schemas } from './api.ts';

/** The share `part` of all values is at most this. Undefined: there are none. */
function quantile(values: readonly number[], part: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

/** From acceptance to the first text, in milliseconds. */
const firstTokenMs = ({ timeline: { accepted_at: from, first_token_at: to } }: Schemas['AdminRequest']) =>
  from === null || to === null ? [] : [(to - from) * 1_000];

function LatestStats() {
  const latest = useLatest().data?.data;
  const ended = latest?.filter(({ status }) => status !== 'refused');
  const waits = ended?.flatMap(firstTokenMs) ?? [];
  const failed = ended?.filter(({ status }) => status === 'failed').length ?? 0;
  const [p50, p95] = [quantile(waits, 0.5), quantile(waits, 0.95)];
  return (
    <>
      <Stat
        label="First token, median"
        value={latest && (p50 === undefined ? '–' : duration(p50))}
        note={p95 === undefined ? 'of the latest 100 requests' : `95 % within ${duration(p95)}, of the latest 100`}
      />
      <Stat
        label="Failed"
        value={ended && share(ended.length === 0 ? 0 : failed / ended.length)}
        note={<Link href="/requests?status=failed">of the latest 100: look at them</Link>}
        {...(failed > 0 ? { tone: 'failed' as const } : {})}
      />
    </>
  );
}

const useQueues = () =>
  useQuery({
    queryKey: ['queues'],
    queryFn: () => allPages((query) => ok(api.GET('/queues', { params: { query } }))),
    ...LIVE,
  });

function Queues() {
  const mayWrite = useMayWrite();
  const query = useQueues();
  const { act, failure } = useAct();
  const change = async ({ id, paused }: Schemas['Queue']) => {
    const params = { params: { path: { queue: id } } };
    await (paused ? api.POST('/queues/{queue}/resume', params) : api.POST('/queues/{queue}/pause', params));
    toast(paused ? `${id} goes on` : `${id} is paused: requests are accepted and wait`);
    await query.refetch();
  };
  const columns: Column<Schemas['Queue']>[] = [
    { title: 'Queue', cell: ({ queue, shard }) => `${queue}, shard ${shard}` },
    {
      title: 'State',
      cell: ({ paused }) => <Badge tone={paused ? 'waiting' : 'success'}>{paused ? 'paused' : 'open'}</Badge>,
    },
    { title: 'Waiting', right: true, cell: ({ waiting }) => count(waiting) },
    { title: 'Running', right: true, cell: ({ active }) => count(active) },
    { title: 'Oldest', right: true, cell: ({ oldest_age_seconds: age }) => (age === 0 ? '–' : duration(age * 1_000)) },
    { title: 'Leave a second', right: true, cell: ({ drain_rate_per_second: rate }) => rate.toFixed(1) },
    {
      title: 'Most in line',
      cell: ({ waiting_by_tenant: tenants }) =>
        tenants.slice(0, 3).map(({ tenant_id: id, waiting }) => (
          <Link key={id} class="mono" href={`/tenants/${id}`}>
            {id} ({count(waiting)}){' '}
          </Link>
        )),
    },
    {
      title: '',
      cell: (queue) =>
        mayWrite && <Button onClick={() => void act(() => change(queue))}>{queue.paused ? 'Resume' : 'Pause'}</Button>,
    },
  ];
  return (
    <Card title="Queues" bare actions={<a href="../queues">Job by job</a>}>
      {failure && <div class="body">{failure}</div>}
      <Table
        label="Queues"
        columns={columns}
        list={wholeList(query.data?.data, query)}
        keyOf={({ id }) => id}
        empty={<Empty title="There is no queue." />}
      />
    </Card>
  );
}

const PROCESS_COLUMNS: Column<Schemas['Process']>[] = [
  {
    title: 'Process',
    cell: ({ kind, host, pid }) => `${kind === 'ingress' ? 'Ingress' : 'Worker'} on ${host}, ${pid}`,
  },
  {
    title: 'State',
    cell: ({ draining }) => <Badge tone={draining ? 'waiting' : 'success'}>{draining ? 'draining' : 'running'}</Badge>,
  },
  { title: 'Version', cell: ({ version, commit }) => <code>{`${version} ${commit.slice(0, 8)}`}</code> },
  { title: 'Protocol', right: true, cell: ({ protocol }) => protocol },
  { title: 'In flight', right: true, cell: ({ running }) => count(running) },
  { title: 'Up', right: true, cell: ({ uptime_seconds: seconds }) => duration(seconds * 1_000) },
];

/** Requests by minute, in the last hour, by how they were asked for. */
function Throughput() {
  const query = useQuery({
    queryKey: ['usage', 'throughput'],
    queryFn: () => {
      const now = Math.floor(Date.now() / 1_000);
      const span = { start_time: now - 3_600, end_time: now, bucket_width: '1m', limit: 61 } as const;
      return ok(api.GET('/usage', { params: { query: { ...span, group_by: ['endpoint'] } } }));
    },
    refetchInterval: 15_000,
  });
  const buckets = query.data?.data;
  const { moments, series } = useMemo(
    () =>
      toSeries(
        buckets ?? [],
        ({ endpoint }) => endpoint ?? 'none',
        ({ requests }) => requests,
      ),
    [buckets],
  );
  if (query.error !== null) return <ErrorBox error={query.error} retry={() => void query.refetch()} />;
  return (
    <Card title="Answered requests a minute, last hour">
      {buckets?.every(({ results }) => results.length === 0) === true ? (
        <Empty title="No request has ended in the last hour." />
      ) : (
        <Chart label="Answered requests by minute and endpoint" moments={moments} series={series} format={compact} />
      )}
    </Card>
  );
}

const several = (number: number, one: string, many: string) => `${count(number)} ${number === 1 ? one : many}`;

/** What runs, what waits, and how long. */
export function Fleet() {
  const processes = useQuery({
    queryKey: ['processes'],
    queryFn: () => allPages((page) => ok(api.GET('/processes', { params: { query: { ...page, order: 'asc' } } }))),
    ...LIVE,
  });
  const providers = useProviders().data?.data;
  const all = processes.data?.data;
  const running = all?.reduce((sum, { kind, running: some }) => sum + (kind === 'worker' ? some : 0), 0);
  const shut = providers?.filter(({ breaker_state: state }) => state !== null && state !== 'closed') ?? [];
  const wanted = useQueues().data?.workers_wanted;
  const of = (kind: string) => all?.filter((each) => each.kind === kind && !each.draining).length ?? 0;
  return (
    <>
      <PageHead title="Fleet" about="What runs and what waits; asked again every five seconds." />
      <div class="stats">
        <Stat
          label="Running requests"
          value={running && count(running)}
          note={`${several(of('worker'), 'worker', 'workers')}, ${several(of('ingress'), 'ingress', 'ingresses')}`}
        />
        <Stat
          label="Workers wanted"
          value={wanted === undefined ? undefined : count(wanted)}
          note={`${count(of('worker'))} take requests`}
          {...(all !== undefined && wanted !== undefined && wanted > of('worker') ? { tone: 'waiting' as const } : {})}
        />
        <LatestStats />
        <Stat
          label="Breakers not closed"
          value={providers && count(shut.length)}
          note={
            <Link href="/providers">
              {shut.length === 0 ? 'every provider is called' : shut.map(({ name }) => name).join(', ')}
            </Link>
          }
          {...(shut.length > 0 ? { tone: 'failed' as const } : {})}
        />
      </div>
      <Throughput />
      <Queues />
      <Card title="Processes" bare>
        <Table
          label="Processes"
          columns={PROCESS_COLUMNS}
          list={wholeList(all, processes)}
          keyOf={({ id }) => id}
          empty={<Empty title="No process was heard of within ten seconds." />}
        />
      </Card>
    </>
  );
}
