import { useQuery, useQueryClient } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { ok } from '../shell/api.ts';
import { navigate, useParams } from '../shell/router.ts';
import { STATUSES, TIERS, count, credits, duration, words } from '../ui/format.ts';
import { Field, Select, textOf } from '../ui/field.tsx';
import { Badge, Button, Card, CopyButton, Empty, ErrorBox, Facts, PageHead, Time, useAct } from '../ui/parts.tsx';
import { Table, useList } from '../ui/table.tsx';
import type { Column } from '../ui/table.tsx';
import { Timeline } from '../ui/timeline.tsx';
import type { Span } from '../ui/timeline.tsx';
import { toast } from '../ui/toast.tsx';
import { LIVE, api, useMayWrite, useProviders } from './api.ts';
import type { Schemas } from './api.ts';

type Row = Schemas['AdminRequest'];

const tookMs = ({ timeline: { accepted_at: from, finished_at: to } }: Row) =>
  from === null || to === null ? undefined : (to - from) * 1_000;

const COLUMNS: Column<Row>[] = [
  { title: 'Accepted', width: 15.5, cell: ({ created_at: at }) => <Time at={at} /> },
  {
    title: 'Request',
    width: 14,
    cell: ({ id }) => (
      <Link class="mono clip id" href={`/requests/${id}`} title={id}>
        {id}
      </Link>
    ),
  },
  {
    title: 'Status',
    width: 16,
    cell: ({ status, reason, error_code: code }) => (
      <>
        <Badge>{status}</Badge>
        {(reason ?? code) !== null && (
          <span class="muted clip below" title={reason ?? code ?? ''}>
            {reason ?? code}
          </span>
        )}
      </>
    ),
  },
  { title: 'Tier', width: 8.5, isMinor: true, cell: ({ tier }) => <span class="clip">{tier}</span> },
  { title: 'Provider', width: 10, isMinor: true, cell: ({ provider }) => <span class="clip">{provider}</span> },
  {
    title: 'Took',
    right: true,
    width: 8.5,
    isMinor: true,
    cell: (row) => {
      const ms = tookMs(row);
      return ms === undefined ? '' : duration(ms);
    },
  },
  {
    title: 'Tokens',
    right: true,
    width: 7.5,
    isMinor: true,
    cell: ({ prompt_tokens: a, completion_tokens: b }) => (a === null ? '' : count(a + (b ?? 0))),
  },
  {
    title: 'Credits',
    right: true,
    width: 8,
    isMinor: true,
    cell: ({ credits: charged }) => (charged === null ? '' : credits(charged)),
  },
  {
    title: 'Tenant',
    width: 12,
    isMinor: true,
    cell: ({ tenant_id: id }) => (
      <Link class="mono clip id" href={`/tenants/${id}`} title={id}>
        {id}
      </Link>
    ),
  },
];

/** One of a list of words, if it is one. */
const oneOf = <Word extends string>(all: readonly Word[], word: string | undefined): Word | undefined =>
  all.find((each) => each === word);

const choices = (all: readonly string[], any: string): (readonly [string, string])[] => [
  ['', any],
  ...all.map((each) => [each, words(each)] as const),
];

function Filters() {
  const [params, change] = useParams();
  const providers = useProviders().data?.data.map(({ name }) => name) ?? [];
  const set = (name: string) => (event: Event) => {
    change(
      { [name]: (event.target as HTMLInputElement).value, after: undefined, before: undefined },
      { replace: true },
    );
  };
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    const id = textOf(new FormData(event.target as HTMLFormElement), 'id')?.trim();
    if (id !== undefined) navigate(`/requests/${encodeURIComponent(id)}`);
  };
  return (
    <div class="filters">
      <form onSubmit={find}>
        <Field label="Find by id" name="id" placeholder="req_…" />
      </form>
      <Select
        label="Status"
        options={choices(STATUSES, 'Every status')}
        value={params['status'] ?? ''}
        onChange={set('status')}
      />
      <Select label="Tier" options={choices(TIERS, 'Every tier')} value={params['tier'] ?? ''} onChange={set('tier')} />
      <Select
        label="Provider"
        options={[['', 'Every provider'], ...providers.map((name) => [name, name] as const)]}
        value={params['provider'] ?? ''}
        onChange={set('provider')}
      />
      <Field label="Tenant" placeholder="ten_…" value={params['tenant_id'] ?? ''} onChange={set('tenant_id')} />
    </div>
  );
}

export function Requests() {
  const [{ status, tier, provider, tenant_id: tenant }] = useParams();
  const [knownStatus, knownTier] = [oneOf(STATUSES, status), oneOf(TIERS, tier)];
  const filter = {
    ...(knownStatus && { status: knownStatus }),
    ...(knownTier && { tier: knownTier }),
    ...((provider ?? '') !== '' && { provider }),
    ...((tenant ?? '') !== '' && { tenant_id: tenant }),
  };
  const list = useList<Row>(
    ['requests', filter],
    (query) => ok(api.GET('/requests', { params: { query: { ...query, ...filter } } })),
    LIVE,
  );
  return (
    <>
      <PageHead title="Requests" about="Ended and refused requests of every tenant, newest first; never their text." />
      <Filters />
      <Card bare>
        <Table
          label="Requests"
          columns={COLUMNS}
          list={list}
          keyOf={({ id }) => id}
          empty={<Empty title="No request matches.">A request is listed a second after its end.</Empty>}
        />
      </Card>
    </>
  );
}

/** The parts of a request in the order in which they began. */
function spansOf({ timeline }: Row): Span[] {
  const {
    accepted_at: accepted,
    started_at: started,
    moderated_at: moderated,
    first_token_at: first,
    finished_at: end,
  } = timeline;
  const span = (label: string, from: number | null, to: number | null, tone: Span['tone'], note?: string): Span[] =>
    from === null || to === null
      ? []
      : [{ label, from, to, ...(tone && { tone }), ...(note === undefined ? {} : { note }) }];
  return [
    ...span('Queue', accepted, started, 'waiting'),
    ...span('Moderation', started, moderated, 'quiet', timeline.verdict ?? undefined),
    ...timeline.attempts.flatMap(({ provider, model, started_at: from, ended_at: to, outcome }) =>
      span(`${provider} ${model}`, from, to, outcome === 'ok' ? 'success' : 'failed', outcome),
    ),
    ...span('Answer sent', first, end, 'success'),
  ];
}

const unlessNull = (value: number | null, text: (value: number) => string) =>
  value === null ? undefined : text(value);

function RequestFacts({ row }: { row: Row }) {
  return (
    <Facts
      rows={[
        ['Status', <Badge>{row.status}</Badge>],
        ['Why', row.reason ?? row.error_code],
        [
          'Tenant',
          <Link class="mono" href={`/tenants/${row.tenant_id}`}>
            {row.tenant_id}
          </Link>,
        ],
        ['Key', <code>{row.key_id}</code>],
        ['Endpoint', `${row.endpoint}, ${row.mode}`],
        ['Tier', row.tier],
        ['Answered by', row.provider === null ? null : `${row.provider} ${row.model ?? ''}`],
        ['Finish reason', row.finish_reason],
        ['Prompt tokens', unlessNull(row.prompt_tokens, count)],
        ['Completion tokens', unlessNull(row.completion_tokens, count)],
        ['Counted', row.estimated === null ? null : row.estimated ? 'here, as an estimate' : 'by the provider'],
        ['Charged', unlessNull(row.credits, (value) => `${credits(value)} credits`)],
        ['Cost', unlessNull(row.cost, (value) => `${credits(value)} ${row.currency?.toUpperCase() ?? ''}`)],
        ['Accepted', <Time at={row.created_at} />],
      ]}
    />
  );
}

/** Says first what a replay would do; the second press does it. */
function Replay({ id }: { id: string }) {
  const queries = useQueryClient();
  const [plan, setPlan] = useState<Schemas['RequestReplay']>();
  const { act, failure } = useAct();
  const call = (isDry: boolean) =>
    act(async () => {
      const replay = await ok(api.POST('/requests/replay', { body: { request_ids: [id], dry_run: isDry } }));
      if (isDry) {
        setPlan(replay);
        return;
      }
      setPlan(undefined);
      toast(replay.replayed === 1 ? 'It runs again' : 'It was not replayed');
      await queries.invalidateQueries();
    });
  const reason =
    plan?.data[0]?.reason ?? plan?.skipped_reasons[0]?.reason ?? (plan?.matched === 0 ? 'not_replayable' : undefined);
  return (
    <div class="stack tight">
      <div class="row">
        <Button onClick={() => void call(true)}>Can it be replayed?</Button>
        {plan !== undefined && reason === undefined && (
          <Button kind="primary" onClick={() => void call(false)}>
            Replay it now
          </Button>
        )}
      </div>
      {plan !== undefined && (
        <p class="notice" data-tone={reason === undefined ? 'success' : 'waiting'} role="status">
          {reason === undefined
            ? 'It failed in an outage and can run again.'
            : `It cannot be replayed: ${words(reason)}.`}
        </p>
      )}
      {failure}
    </div>
  );
}

export function RequestPage({ params: { id } }: { params: { id: string } }) {
  const mayWrite = useMayWrite();
  const query = useQuery({
    queryKey: ['requests', id],
    queryFn: () => ok(api.GET('/requests/{request_id}', { params: { path: { request_id: id } } })),
    ...LIVE,
  });
  const row = query.data;
  const spans = row === undefined ? [] : spansOf(row);
  return (
    <>
      <PageHead title="Request" about={<code>{id}</code>}>
        <CopyButton text={id} label="Copy id" />
      </PageHead>
      {query.error !== null && row === undefined && <ErrorBox error={query.error} retry={() => void query.refetch()} />}
      {row !== undefined && (
        <>
          <Card title="Where the time went">
            {spans.length === 0 ? <Empty title="It was refused at once." /> : <Timeline spans={spans} />}
          </Card>
          <Card title="What is known" actions={mayWrite && row.status === 'failed' ? <Replay id={id} /> : undefined}>
            <RequestFacts row={row} />
          </Card>
        </>
      )}
    </>
  );
}
