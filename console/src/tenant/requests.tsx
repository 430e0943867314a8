import { useQuery } from '@tanstack/preact-query';
import { Link } from 'wouter-preact';

import { ok } from '../shell/api.ts';
import { navigate, useParams } from '../shell/router.ts';
import { Field, Select, textOf } from '../ui/field.tsx';
import { STATUSES, TIERS, count, credits, localTime } from '../ui/format.ts';
import { Badge, Button, Card, Code, CopyButton, Empty, ErrorBox, Facts, PageHead, Time, useAct } from '../ui/parts.tsx';
import { useList } from '../ui/table.tsx';
import { Timeline } from '../ui/timeline.tsx';
import type { Span } from '../ui/timeline.tsx';
import { api, curl } from './api.ts';
import { RequestsTable } from './requests-table.tsx';
import type { RequestSummary } from './requests-table.tsx';

const LIVE_MS = 3_000;

export function Requests() {
  const [{ status, model, error_code: code, key_id: keyId, start_time: from }, change] = useParams();
  const filter = { status, model, error_code: code, key_id: keyId, start_time: from } as Record<
    string,
    string | undefined
  >;
  const list = useList(
    ['requests', filter],
    (page) => ok(api.GET('/requests', { params: { query: { ...(filter as object), ...page } } })),
    { refetchInterval: LIVE_MS },
  );
  const set = (name: string) => (event: { currentTarget: { value: string } }) => {
    change({ [name]: event.currentTarget.value, after: undefined, before: undefined }, { replace: true });
  };
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return (
    <>
      <PageHead title="Requests" about="What ended or was refused, a second later. Running ones are found by their id.">
        <FindRequest />
      </PageHead>
      <div class="filters">
        <Select
          label="Status"
          value={status ?? ''}
          onChange={set('status')}
          options={[['', 'Any'], ...STATUSES.map((each) => [each, each] as const)]}
        />
        <Select
          label="Tier"
          value={model ?? ''}
          onChange={set('model')}
          options={[['', 'Any'], ...TIERS.map((each) => [each, each] as const)]}
        />
        <Select label="Time" value={from ?? ''} onChange={set('start_time')} options={[['', 'Any'], ...sinces(from)]} />
        <Field label="Error code" value={code ?? ''} placeholder="timeout" onChange={set('error_code')} />
        <Field label="Key" value={keyId ?? ''} placeholder="key_…" onChange={set('key_id')} />
      </div>
      <Card bare>
        <RequestsTable
          list={list}
          empty={
            isFiltered ? (
              <Empty title="No request matches">Other filters may show some.</Empty>
            ) : (
              <Empty title="No request yet" call={curl('/chat', { messages: [{ role: 'user', content: 'Hello' }] })}>
                Make one, or try it in the <Link href="/playground">playground</Link>.
              </Empty>
            )
          }
        />
      </Card>
    </>
  );
}

/** Beginnings of the list, in Unix seconds; one that an address names is among them. */
function sinces(from: string | undefined): (readonly [string, string])[] {
  const now = Math.floor(Date.now() / 1_000);
  const today = now - (now % 86_400);
  const known = [
    [String(today), 'Today (UTC)'],
    [String(today - 6 * 86_400), '7 days'],
  ] as const;
  const isOther = from !== undefined && !known.some(([value]) => value === from);
  return isOther ? [...known, [from, `Since ${localTime(Number(from))}`]] : [...known];
}

function FindRequest() {
  return (
    <form
      class="row nowrap"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const id = textOf(new FormData(event.currentTarget), 'id')?.trim();
        if (id !== undefined) navigate(`/requests/${encodeURIComponent(id)}`);
      }}
    >
      <input class="input mono" name="id" aria-label="Request id" placeholder="req_…" required />
      <button type="submit" class="button">
        Find
      </button>
    </form>
  );
}

interface Timed {
  accepted_at: number | null;
  queued_at: number | null;
  started_at: number | null;
  moderated_at: number | null;
  first_token_at: number | null;
  finished_at: number | null;
  settled_at: number | null;
  attempts: readonly {
    provider: string;
    model: string;
    started_at: number | null;
    ended_at: number | null;
    outcome: string;
  }[];
}

/** What took how long, from acceptance to booking. A span that has begun and not ended reaches to now. */
function spansOf(times: Timed, now: number): Span[] {
  const { accepted_at: accepted, started_at: started, moderated_at: moderated } = times;
  const { first_token_at: first, finished_at: finished, settled_at: settled } = times;
  const span = (label: string, from: number | null, to: number | null, more: Partial<Span> = {}): Span[] =>
    from === null ? [] : [{ label, from, to: Math.max(from, to ?? finished ?? now), ...more }];
  return [
    ...span('Queue', accepted, started, { tone: 'waiting' }),
    ...span('Moderation', started, moderated, { tone: 'quiet' }),
    ...times.attempts.flatMap(({ provider, model, started_at: from, ended_at: to, outcome }) =>
      span(provider, from, to, {
        note: outcome === 'ok' ? model : `${model}: ${outcome}`,
        ...(outcome === 'ok' ? {} : { tone: 'failed' }),
      }),
    ),
    ...(first === null ? [] : span('Answer', first, finished, { tone: 'success', note: 'first to last token' })),
    ...(settled === null ? [] : span('Booking', finished, settled, { tone: 'quiet' })),
  ];
}

/** Finds a request in the list, however old: as the one behind the one that came after it, or as the newest. */
async function summaryOf(id: string): Promise<RequestSummary | null> {
  const firstOf = async (place: { after?: string; order?: 'asc' }) =>
    (await ok(api.GET('/requests', { params: { query: { limit: 1, ...place } } }))).data[0];
  const newer = await firstOf({ after: id, order: 'asc' });
  const found = await firstOf(newer === undefined ? {} : { after: newer.id });
  return found?.id === id ? found : null;
}

export function RequestPage({ params: { id = '' } }: { params: { id?: string } }) {
  const { act, failure } = useAct();
  const request = useQuery({
    queryKey: ['request', id],
    queryFn: () => ok(api.GET('/chat/{request_id}', { params: { path: { request_id: id } } })),
    refetchInterval: ({ state: { data } }) =>
      data?.status === 'queued' || data?.status === 'in_progress' ? 500 : false,
  });
  const kept = useQuery({
    queryKey: ['requests', 'one', id],
    enabled: request.error !== null,
    queryFn: () => summaryOf(id),
  });
  const summary = kept.data ?? undefined;
  const { data } = request;
  const isRunning = data?.status === 'queued' || data?.status === 'in_progress';
  const cancel = async () => {
    await api.POST('/chat/{request_id}/cancel', { params: { path: { request_id: id } } });
    await request.refetch();
  };
  const response = data?.response;
  const answer = response && 'choices' in response ? response.choices[0] : undefined;
  const text = answer?.message.content;
  const spans = data === undefined ? [] : spansOf(data.timeline, Date.now() / 1_000);
  return (
    <>
      <PageHead title="Request" about={<code class="break">{id}</code>}>
        <CopyButton text={id} label="Copy id" />
        {isRunning && (
          <Button kind="danger" onClick={() => void act(cancel)}>
            Cancel it
          </Button>
        )}
      </PageHead>
      {failure}
      {request.error !== null && !kept.isFetching && summary === undefined && <ErrorBox error={request.error} />}
      {request.error !== null && summary !== undefined && (
        <Card title="What is kept of it; its answer is not, or was never made">
          <Facts
            rows={[
              ['Status', <Badge key="s">{summary.status}</Badge>],
              ['Error', summary.error_code],
              ['Accepted', <Time key="a" at={summary.accepted_at} />],
              ['Ended', <Time key="e" at={summary.finished_at} />],
              ['Tier', summary.model],
              [
                'Key',
                <Link key="k" href={`/keys/${summary.key_id}`}>
                  {summary.key_id}
                </Link>,
              ],
              ['Credits', summary.credits === null ? null : credits(summary.credits)],
            ]}
          />
        </Card>
      )}
      {data !== undefined && (
        <>
          <div class="grid">
            <Card title="What became of it">
              <Facts
                rows={[
                  ['Status', <Badge key="s">{data.status}</Badge>],
                  ...(data.queue === null
                    ? []
                    : [
                        [
                          'Place in the queue',
                          `${data.queue.position}, about ${data.queue.estimated_wait_seconds} s`,
                        ] as const,
                      ]),
                  ['Finish reason', answer?.finish_reason],
                  ['Tier', data.response?.model],
                  ['Accepted', <Time key="a" at={data.timeline.accepted_at} />],
                  ['Ended', <Time key="e" at={data.timeline.finished_at} />],
                  ['Moderation', data.timeline.moderation?.verdict],
                ]}
              />
            </Card>
            <Card title="Tokens">
              <Facts
                rows={[
                  ['Prompt', data.usage && count(data.usage.prompt_tokens)],
                  ['Answer', data.usage && count(data.usage.completion_tokens)],
                  ['Together', data.usage && count(data.usage.total_tokens)],
                ]}
              />
            </Card>
          </div>
          <Card title="Timeline, to scale">
            <Timeline spans={spans} />
          </Card>
          {data.error !== null && (
            <div class="notice" data-tone="failed">
              <p>{data.error.message}</p>
              <code>{data.error.code}</code>
            </div>
          )}
          <Card title="Answer" bare>
            {text === undefined ? (
              <Empty title={isRunning ? 'Not ended yet' : 'No answer'} />
            ) : (
              <div class="answer">{text}</div>
            )}
          </Card>
          <Card title="The call that shows this">
            <Code text={curl(`/chat/${id}`)} label="The call" />
          </Card>
        </>
      )}
    </>
  );
}
