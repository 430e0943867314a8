import { useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import type { paths } from '../../public-api.d.ts';
import { ok, queries } from '../shell/api.ts';
import { navigate } from '../shell/router.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { download } from '../ui/download.ts';
import { bytes, count, duration, share } from '../ui/format.ts';
import {
  Badge,
  Button,
  Card,
  Code,
  CopyButton,
  Empty,
  ErrorBox,
  Facts,
  Meter,
  PageHead,
  Time,
  useAct,
} from '../ui/parts.tsx';
import { Table, useList } from '../ui/table.tsx';
import { api, baseUrl, raw } from './api.ts';

type Batch = paths['/batches']['get']['responses'][200]['content']['application/json']['data'][number];

const ENDED = ['completed', 'failed', 'expired', 'cancelled'];
const RESULTS_SHOWN = 200;
const EXAMPLE = `{"custom_id": "1", "body": {"messages": [{"role": "user", "content": "Name a bridge."}]}}
{"custom_id": "2", "body": {"messages": [{"role": "user", "content": "Name a river."}]}}`;

function Progress({ counts: { total, completed, failed } }: { counts: Batch['request_counts'] }) {
  const done = total === 0 ? 0 : (completed + failed) / total;
  return (
    <span class="progress">
      <Meter
        value={done}
        tone={failed > 0 && completed === 0 ? 'failed' : 'success'}
        label={`${share(done)} have ended`}
      />
      <span class="number small">
        {count(completed + failed)} of {count(total)}
        {failed > 0 && <span class="failed">, {count(failed)} failed</span>}
      </span>
    </span>
  );
}

/** A file of requests, dropped or chosen. */
function Upload() {
  const [isOver, setOver] = useState(false);
  const [name, setName] = useState('');
  const { act, isBusy, failure } = useAct();
  const send = async (file: File) => {
    setName(`${file.name}, ${bytes(file.size)}`);
    const init = { method: 'POST', headers: { 'Content-Type': 'application/x-ndjson' }, body: file };
    const batch = (await (await raw('/batches', init)).json()) as Batch;
    await queries.invalidateQueries({ queryKey: ['batches'] });
    navigate(`/batches/${batch.id}`);
  };
  const sendAny = (file: File | undefined) => {
    if (file !== undefined) void act(() => send(file));
  };
  return (
    <div class="stack">
      <label
        class="drop"
        data-over={isOver}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => {
          setOver(false);
        }}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          sendAny(event.dataTransfer?.files[0]);
        }}
      >
        <strong>{isBusy ? `Sending ${name} …` : 'Drop a file of requests, or choose one'}</strong>
        <span class="small">NDJSON, a request a line, up to 10,000 lines and 50 MiB</span>
        <input
          class="visually-hidden"
          type="file"
          accept=".ndjson,.jsonl,.json,application/x-ndjson"
          disabled={isBusy}
          onChange={(event) => {
            sendAny(event.currentTarget.files?.[0]);
            event.currentTarget.value = '';
          }}
        />
      </label>
      {failure}
    </div>
  );
}

export function Batches() {
  const list = useList(['batches'], (page) => ok(api.GET('/batches', { params: { query: page } })), {
    refetchInterval: 3_000,
  });
  return (
    <>
      <PageHead
        title="Batches"
        about="Thousands of requests in one file. They yield to interactive requests and end within 24 hours."
      />
      <Upload />
      <Card bare>
        <Table<Batch>
          label="batches"
          list={list}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Batch',
              cell: ({ id }) => (
                <Link class="mono" href={`/batches/${id}`}>
                  {id}
                </Link>
              ),
            },
            { title: 'Status', cell: ({ status }) => <Badge>{status}</Badge> },
            { title: 'Requests', cell: ({ request_counts: counts }) => <Progress counts={counts} /> },
            { title: 'Created', cell: ({ created_at: at }) => <Time at={at} /> },
            { title: 'Ended', cell: ({ completed_at: at, cancelled_at: cut }) => <Time at={at ?? cut} /> },
          ]}
          empty={
            <Empty
              title="No batch yet"
              call={`cat > requests.ndjson <<'END'\n${EXAMPLE}\nEND\ncurl -X POST ${baseUrl}/batches \\\n  -H "Authorization: Bearer $PARLEY_KEY" \\\n  -H "Content-Type: application/x-ndjson" --data-binary @requests.ndjson`}
            >
              Drop a file above; each line is a request with an id of yours.
            </Empty>
          }
        />
      </Card>
    </>
  );
}

interface Line {
  custom_id: string;
  request_id: string | null;
  response?: { choices: { message: { content: string } }[] } | null;
  error?: { code: string; message: string } | null;
}

function Results({ batch }: { batch: Batch }) {
  const [onlyFailed, setOnlyFailed] = useState(batch.request_counts.failed > 0);
  const done = batch.request_counts.completed + batch.request_counts.failed;
  const results = useQuery({
    queryKey: ['batch', batch.id, 'results', done],
    queryFn: async () => (await raw(`/batches/${batch.id}/results`)).text(),
    placeholderData: (before) => before,
    enabled: done > 0,
  });
  const lines = (results.data ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
  const shown = lines.filter(({ error }) => !onlyFailed || (error ?? null) !== null).slice(0, RESULTS_SHOWN);
  return (
    <Card
      bare
      title="Results"
      actions={
        <>
          <label class="row small">
            <input
              type="checkbox"
              checked={onlyFailed}
              onChange={(event) => {
                setOnlyFailed(event.currentTarget.checked);
              }}
            />
            Failures only
          </label>
          <Button
            disabled={results.data === undefined}
            onClick={() => {
              download(`${batch.id}.ndjson`, 'application/x-ndjson', results.data ?? '');
            }}
          >
            Download
          </Button>
        </>
      }
    >
      <Table<Line>
        label="results"
        list={{
          rows: done === 0 ? [] : results.data === undefined ? undefined : shown,
          query: results,
          newer: undefined,
          older: undefined,
        }}
        keyOf={({ custom_id: id }) => id}
        columns={[
          { title: 'Line', cell: ({ custom_id: id }) => <span class="clip">{id}</span> },
          {
            title: 'Request',
            cell: ({ request_id: id }) =>
              id === null ? (
                '–'
              ) : (
                <Link class="mono" href={`/requests/${id}`}>
                  {id}
                </Link>
              ),
          },
          {
            title: 'Result',
            cell: ({ response, error }) =>
              error === undefined || error === null ? (
                <span class="clip">
                  {(response && 'choices' in response && response.choices[0]?.message.content) || ''}
                </span>
              ) : (
                <span class="row">
                  <Badge tone="failed">{error.code}</Badge>
                  <span class="clip">{error.message}</span>
                </span>
              ),
          },
        ]}
        empty={<Empty title={onlyFailed && lines.length > 0 ? 'No line has failed' : 'No line has ended yet'} />}
      />
      {lines.length > RESULTS_SHOWN && <p class="table-foot">The first {RESULTS_SHOWN} are shown; the file has all.</p>}
    </Card>
  );
}

export function BatchPage({ params: { id = '' } }: { params: { id?: string } }) {
  const [isOpen, setOpen] = useState(false);
  const path = { params: { path: { batch_id: id } } };
  const batch = useQuery({
    queryKey: ['batch', id],
    queryFn: () => ok(api.GET('/batches/{batch_id}', path)),
    refetchInterval: ({ state: { data } }) => (data !== undefined && ENDED.includes(data.status) ? false : 1_000),
  });
  const { data } = batch;
  const left =
    data?.estimated_completion_at === undefined || data.estimated_completion_at === null
      ? undefined
      : data.estimated_completion_at - Date.now() / 1_000;
  return (
    <>
      <PageHead title="Batch" about={<code>{id}</code>}>
        <CopyButton text={id} label="Copy id" />
        {data !== undefined && !ENDED.includes(data.status) && (
          <Button
            kind="danger"
            onClick={() => {
              setOpen(true);
            }}
          >
            Cancel it
          </Button>
        )}
      </PageHead>
      {batch.error !== null && <ErrorBox error={batch.error} />}
      {data !== undefined && (
        <>
          <Card
            title={
              <span class="row">
                Progress <Badge>{data.status}</Badge>
              </span>
            }
          >
            <div class="stack" aria-live="polite">
              <Progress counts={data.request_counts} />
              <Facts
                rows={[
                  ['Waits for', data.waiting_for],
                  ...(ENDED.includes(data.status)
                    ? []
                    : [['Ready in about', left === undefined ? null : duration(Math.max(0, left) * 1_000)] as const]),
                  ['Created', <Time key="c" at={data.created_at} />],
                  ['Started', <Time key="s" at={data.started_at} />],
                  ['Ended', <Time key="e" at={data.completed_at ?? data.cancelled_at} />],
                  ['Expires', <Time key="x" at={data.expires_at} />],
                ]}
              />
              {data.metadata !== null && <Code text={JSON.stringify(data.metadata, undefined, 2)} label="Metadata" />}
            </div>
          </Card>
          <Results batch={data} />
        </>
      )}
      {isOpen && (
        <FormDialog
          title="Cancel the batch"
          submit="Cancel the batch"
          danger
          onClose={() => {
            setOpen(false);
          }}
          onSubmit={async () => {
            await ok(api.POST('/batches/{batch_id}/cancel', path));
            await batch.refetch();
          }}
        >
          <p>Lines that have not begun are not run. What has ended stays.</p>
        </FormDialog>
      )}
    </>
  );
}
