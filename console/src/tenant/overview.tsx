import { useQuery } from '@tanstack/preact-query';
import { useMemo, useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { ok } from '../shell/api.ts';
import { Chart, toSeries } from '../ui/chart.tsx';
import { compact, count, credits, duration, share } from '../ui/format.ts';
import { Badge, Card, Empty, ErrorBox, Meter, PageHead, Stat } from '../ui/parts.tsx';
import type { Tone } from '../ui/parts.tsx';
import { api, curl, useScope } from './api.ts';
import { RequestsTable } from './requests-table.tsx';
import { nameIn, useUsage } from './usage-data.ts';

/** Requests from which times and errors are told. */
const SAMPLE = 100;
const DAY_SECONDS = 86_400;
const COURSE_DAYS = 7;

/** The day of budgets and usage, which is that of UTC. */
const startOfDay = () => Math.floor(Date.now() / 1_000 / DAY_SECONDS) * DAY_SECONDS;

const middleOf = (sorted: readonly number[], part: number): number | undefined =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

function useRecentRequests(isAllowed: boolean) {
  return useQuery({
    queryKey: ['requests', 'recent'],
    queryFn: () => ok(api.GET('/requests', { params: { query: { limit: SAMPLE } } })),
    refetchInterval: 10_000,
    enabled: isAllowed,
  });
}

function Money() {
  const billing = useQuery({ queryKey: ['billing'], queryFn: () => ok(api.GET('/billing')), refetchInterval: 30_000 });
  const { data } = billing;
  if (billing.error !== null) return <ErrorBox error={billing.error} />;
  const budget = data?.budget;
  const used = budget === undefined || budget.limit === null ? undefined : budget.used / Math.max(1, budget.limit);
  return (
    <>
      <Stat
        label="Available"
        value={data && credits(data.available)}
        tone={data !== undefined && data.available <= 0 ? 'failed' : 'money'}
        note={data ? `credits; ${credits(data.held)} held by running requests` : ' '}
      />
      <Stat
        label="Monthly budget"
        value={budget && (budget.limit === null ? compact(budget.used) : share(used ?? 0))}
        note={
          budget === undefined ? (
            ' '
          ) : budget.limit === null ? (
            'tokens; there is no limit'
          ) : (
            <>
              <Meter value={used ?? 0} label={`${share(used ?? 0)} of the budget is used`} />
              {compact(budget.used)} of {compact(budget.limit)} tokens
            </>
          )
        }
      />
    </>
  );
}

/** Booked ones: what was refused or failed stands beside them. */
function RequestsToday() {
  const { data, error } = useUsage({ start_time: startOfDay(), bucket_width: '1d', limit: 1 });
  const sum = (of: 'requests' | 'total_tokens') =>
    data?.reduce((all, { results }) => results.reduce((part, result) => part + result[of], all), 0);
  const [requests, tokens] = [sum('requests'), sum('total_tokens')];
  if (error !== null) return <ErrorBox error={error} />;
  return (
    <Stat
      label="Requests today"
      value={requests === undefined ? undefined : count(requests)}
      note={tokens === undefined ? ' ' : `${compact(tokens)} tokens, since 00:00 UTC`}
    />
  );
}

/** Counts those that ended so since then; at most a page is read, so there may be more. */
function useEnded(status: 'failed' | 'refused', from: number) {
  const { data } = useQuery({
    queryKey: ['requests', 'today', status, from],
    queryFn: () => ok(api.GET('/requests', { params: { query: { status, start_time: String(from), limit: SAMPLE } } })),
    refetchInterval: 30_000,
  });
  return data === undefined ? undefined : { count: data.data.length, more: data.has_more ? '+' : '' };
}

function ErrorsToday() {
  const from = startOfDay();
  const ended = (['failed', 'refused'] as const).map((status) => [status, useEnded(status, from)] as const);
  const all = ended.reduce((sum, [, of]) => sum + (of?.count ?? 0), 0);
  const isKnown = ended.every(([, of]) => of !== undefined);
  return (
    <Stat
      label="Errors today (UTC)"
      value={isKnown ? `${count(all)}${ended.some(([, of]) => of?.more === '+') ? '+' : ''}` : undefined}
      {...(all === 0 ? {} : { tone: 'failed' as const })}
      note={
        <>
          {ended.map(([status, of]) => (
            <span key={status}>
              {of !== undefined && of.count > 0 && (
                <Link href={`/requests?status=${status}&start_time=${from}`}>
                  {count(of.count)}
                  {of.more} {status}
                </Link>
              )}{' '}
            </span>
          ))}
          {isKnown && all === 0 ? 'none in the list' : 'in the list'}
        </>
      }
    />
  );
}

function Times() {
  const { data } = useRecentRequests(true);
  const rows = data?.data;
  const first = useMemo(
    () =>
      (rows ?? [])
        .flatMap(({ accepted_at: from, first_token_at: to }) =>
          from === null || to === null ? [] : [(to - from) * 1_000],
        )
        .sort((a, b) => a - b),
    [rows],
  );
  const [middle, late] = [middleOf(first, 0.5), middleOf(first, 0.95)];
  return (
    <>
      <Stat
        label="First token"
        value={rows && (middle === undefined ? '–' : duration(middle))}
        note={late === undefined ? 'median of the last requests' : `median; 95 % within ${duration(late)}`}
      />
      <ErrorsToday />
    </>
  );
}

/** The balance at the end of each hour, from now back: what was used then is added, what was bought is taken away. */
function Balance() {
  const [from] = useState(() => Math.floor(Date.now() / 3_600_000) * 3_600 - COURSE_DAYS * DAY_SECONDS);
  const billing = useQuery({ queryKey: ['billing'], queryFn: () => ok(api.GET('/billing')) });
  const usage = useUsage({ start_time: from, bucket_width: '1h', limit: 168 });
  const booked = useQuery({
    queryKey: ['billing', 'course'],
    queryFn: async () => {
      const pages = (['purchase', 'grant', 'adjustment'] as const).map((type) =>
        ok(api.GET('/billing/transactions', { params: { query: { type, limit: 100 } } })),
      );
      return (await Promise.all(pages)).flatMap(({ data }) => data);
    },
  });
  const course = useMemo(() => {
    if (billing.data === undefined || usage.data === undefined || booked.data === undefined) return undefined;
    let { balance } = billing.data;
    const ends = usage.data.toReversed().map(({ start_time: start, end_time: end, results }) => {
      const point = [end, balance] as const;
      const moved = booked.data.filter(({ created_at: at }) => at >= start && at < end);
      balance += results.reduce((sum, { credits: used }) => sum + used, 0);
      balance -= moved.reduce((sum, { credits: added }) => sum + added, 0);
      return point;
    });
    return [...ends, [from, balance] as const].reverse();
  }, [billing.data, usage.data, booked.data]);
  const chart = useMemo(
    () => ({
      moments: course?.map(([at]) => at) ?? [],
      series: [{ label: 'Credits', values: course?.map(([, balance]) => balance) ?? [] }],
    }),
    [course],
  );
  const first = course?.at(0)?.[1] ?? 0;
  const last = course?.at(-1)?.[1] ?? 0;
  return (
    <Card bare title="Balance of the last 7 days" actions={<Link href="/billing">Billing</Link>}>
      <Chart label={`The balance went from ${credits(first)} to ${credits(last)} credits.`} kind="lines" {...chart} />
    </Card>
  );
}

function Traffic() {
  const from = Math.floor(Date.now() / 3_600_000) * 3_600 - DAY_SECONDS + 3_600;
  const usage = useUsage({ start_time: from, bucket_width: '1h', limit: 25, group_by: ['model'] });
  const { moments, series } = useMemo(
    () => toSeries(usage.data ?? [], nameIn('model'), ({ requests }) => requests),
    [usage.data],
  );
  const total = series.reduce(
    (sum, { values }) => sum + values.reduce<number>((all, value) => all + (value ?? 0), 0),
    0,
  );
  return (
    <Card bare title="Requests of the last 24 hours" actions={<Link href="/usage">Usage</Link>}>
      {usage.error !== null ? (
        <div class="body">
          <ErrorBox error={usage.error} />
        </div>
      ) : (
        <Chart label={`Requests by hour and tier: ${count(total)} in all.`} moments={moments} series={series} />
      )}
    </Card>
  );
}

interface Attention {
  tone: Tone;
  text: string;
  to: string;
  word: string;
}

/** Undefined until all of it is known. */
function useAttention(): Attention[] | undefined {
  const [sees, seesHooks, seesKeys] = [useScope('billing'), useScope('webhooks'), useScope('keys')];
  const asked = [
    useQuery({ queryKey: ['billing'], queryFn: () => ok(api.GET('/billing')), enabled: sees }),
    useQuery({
      queryKey: ['webhooks', 'attention'],
      queryFn: () => ok(api.GET('/webhooks', { params: { query: { limit: 100 } } })),
      enabled: seesHooks,
    }),
    useQuery({
      queryKey: ['keys', 'attention'],
      queryFn: () => ok(api.GET('/keys', { params: { query: { limit: 100 } } })),
      enabled: seesKeys,
    }),
  ] as const;
  if (asked.some(({ isLoading }) => isLoading)) return undefined;
  const [billing, hooks, keys] = [asked[0].data, asked[1].data, asked[2].data];
  const soon = Date.now() / 1_000 + 7 * DAY_SECONDS;
  const { budget } = billing ?? {};
  return [
    ...(billing !== undefined && billing.available <= 0
      ? [
          {
            tone: 'failed',
            text: 'The balance is used up: requests are refused.',
            to: '/billing',
            word: 'Buy credits',
          } as const,
        ]
      : []),
    ...(budget !== undefined && budget.limit !== null && budget.used >= budget.limit * 0.8
      ? [
          {
            tone: 'waiting',
            text: `${share(budget.used / budget.limit)} of this month's budget is used.`,
            to: '/billing',
            word: 'Look',
          } as const,
        ]
      : []),
    ...(hooks?.data ?? [])
      .filter(({ status, failing_since: since }) => status === 'disabled' || since !== null)
      .map(({ id, url, status }) => ({
        tone: 'failed' as const,
        text: status === 'disabled' ? `The webhook ${url} is disabled.` : `Deliveries to ${url} fail.`,
        to: `/webhooks/${id}`,
        word: 'Deliveries',
      })),
    ...(keys?.data ?? [])
      .filter(({ status, expires_at: at }) => status === 'active' && at !== null && at < soon)
      .map(({ id, name, redacted_value: value }) => ({
        tone: 'waiting' as const,
        text: `The key ${name === '' ? value : name} expires within a week.`,
        to: `/keys/${id}`,
        word: 'Rotate it',
      })),
  ];
}

const AttentionLink = ({ text, to, word }: Attention) => (
  <div class="row between">
    <span class="break">{text}</span>
    <Link href={to}>{word}</Link>
  </div>
);

/** Its place is kept while nothing is known, and several take no more until they are unfolded: nothing below it moves. */
function NeedsAttention() {
  const items = useAttention();
  const first = items?.[0];
  if (items === undefined || first === undefined)
    return (
      <div class="notice attention" {...(items === undefined ? {} : { 'data-tone': 'success' })} role="status">
        {items === undefined ? <span class="skeleton" /> : 'Nothing needs your attention.'}
      </div>
    );
  return (
    <div class="notice attention" data-tone={first.tone} role="status">
      {items.length === 1 ? (
        <AttentionLink {...first} />
      ) : (
        <details>
          <summary>
            {first.text} And {count(items.length - 1)} more.
          </summary>
          {items.map((item) => (
            <AttentionLink key={item.text} {...item} />
          ))}
        </details>
      )}
    </div>
  );
}

export function Overview() {
  const [seesUsage, seesBilling, isChat] = [useScope('usage'), useScope('billing'), useScope('chat')];
  const seesRequests = useScope('chat.stream') || isChat;
  const recent = useRecentRequests(seesRequests);
  return (
    <>
      <PageHead title="Overview">
        {seesRequests && (
          <Link class="button" data-kind="primary" href="/playground">
            Try a request
          </Link>
        )}
      </PageHead>
      <NeedsAttention />
      <div class="stats">
        {seesBilling && <Money />}
        {seesUsage && <RequestsToday />}
        {seesRequests && <Times />}
      </div>
      <div class="grid">
        {seesUsage && <Traffic />}
        {seesUsage && seesBilling && <Balance />}
      </div>
      {seesRequests && (
        <Card bare title="Latest requests" actions={<Link href="/requests">All requests</Link>}>
          <RequestsTable
            list={{ rows: recent.data?.data.slice(0, 8), query: recent, newer: undefined, older: undefined }}
            empty={
              <Empty
                title="No request yet"
                call={curl('/chat', { messages: [{ role: 'user', content: 'What is a conversation?' }] })}
                action={<Badge>waiting for the first</Badge>}
              >
                Requests are here a second after their end.
              </Empty>
            }
          />
        </Card>
      )}
    </>
  );
}
