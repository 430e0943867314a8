import { useQuery } from '@tanstack/preact-query';
import { useMemo } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { ok } from '../shell/api.ts';
import { Chart, toSeries } from '../ui/chart.tsx';
import { compact, count, credits, duration, share } from '../ui/format.ts';
import { Badge, Card, Empty, ErrorBox, Meter, PageHead, Stat, Time } from '../ui/parts.tsx';
import type { Tone } from '../ui/parts.tsx';
import { api, curl, useScope } from './api.ts';
import { RequestsTable } from './requests-table.tsx';
import { nameIn, useUsage } from './usage-data.ts';

/** Requests from which times and errors are told. */
const SAMPLE = 100;
const DAY_SECONDS = 86_400;

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
        label="Budget of this month"
        value={budget && (budget.limit === null ? compact(budget.used) : share(used ?? 0))}
        note={
          budget === undefined ? (
            ' '
          ) : budget.limit === null ? (
            'tokens; there is no limit'
          ) : (
            <>
              <Meter value={used ?? 0} label={`${share(used ?? 0)} of the budget is used`} />
              {compact(budget.used)} of {compact(budget.limit)} tokens; resets <Time at={budget.resets_at} />
            </>
          )
        }
      />
    </>
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
  const wrong = rows?.filter(({ status }) => status === 'failed' || status === 'refused').length;
  const [middle, late] = [middleOf(first, 0.5), middleOf(first, 0.95)];
  return (
    <>
      <Stat
        label="First token"
        value={rows && (middle === undefined ? '–' : duration(middle))}
        note={late === undefined ? 'median of the last requests' : `median; 95 % within ${duration(late)}`}
      />
      <Stat
        label="Errors"
        value={rows && wrong !== undefined && (rows.length === 0 ? '–' : share(wrong / rows.length))}
        {...(wrong === undefined || wrong === 0 ? {} : { tone: 'failed' as const })}
        note={
          rows && (
            <>
              {count(wrong ?? 0)} of the last {count(rows.length)}{' '}
              {(wrong ?? 0) > 0 && <Link href="/requests?status=failed">see them</Link>}
            </>
          )
        }
      />
    </>
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

function useAttention(): Attention[] {
  const [sees, seesHooks, seesKeys] = [useScope('billing'), useScope('webhooks'), useScope('keys')];
  const billing = useQuery({ queryKey: ['billing'], queryFn: () => ok(api.GET('/billing')), enabled: sees }).data;
  const hooks = useQuery({
    queryKey: ['webhooks', 'attention'],
    queryFn: () => ok(api.GET('/webhooks', { params: { query: { limit: 100 } } })),
    enabled: seesHooks,
  }).data;
  const keys = useQuery({
    queryKey: ['keys', 'attention'],
    queryFn: () => ok(api.GET('/keys', { params: { query: { limit: 100 } } })),
    enabled: seesKeys,
  }).data;
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

export function Overview() {
  const [seesUsage, seesBilling, isChat] = [useScope('usage'), useScope('billing'), useScope('chat')];
  const seesRequests = useScope('chat.stream') || isChat;
  const attention = useAttention();
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
      {attention.map(({ tone, text, to, word }) => (
        <div key={text} class="notice row between" data-tone={tone} role="status">
          <span class="row break">{text}</span>
          <Link href={to}>{word}</Link>
        </div>
      ))}
      <div class="stats">
        {seesBilling && <Money />}
        {seesRequests && <Times />}
      </div>
      {seesUsage && <Traffic />}
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
