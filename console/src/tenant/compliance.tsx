import { useState } from 'preact/hooks';
import { useQuery } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';

import type { paths } from '../../public-api.d.ts';
import { ok, queries } from '../shell/api.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { download } from '../ui/download.ts';
import { Field, Select, textOf } from '../ui/field.tsx';
import { bytes, count, words } from '../ui/format.ts';
import { Badge, Button, Card, Code, Empty, PageHead, Time, useAct } from '../ui/parts.tsx';
import { Table, useList, wholeList } from '../ui/table.tsx';
import { api, curl, raw } from './api.ts';

type Export = paths['/compliance/exports']['get']['responses'][200]['content']['application/json']['data'][number];
type Deletion = paths['/compliance/deletions']['get']['responses'][200]['content']['application/json']['data'][number];
type Entry = paths['/compliance/audit_log']['get']['responses'][200]['content']['application/json']['data'][number];

const LATEST = { params: { query: { limit: 50 } } } as const;

const scopeOf = (form: FormData) => {
  const id = textOf(form, 'entity_id');
  return id === undefined ? ({ scope: 'tenant' } as const) : ({ scope: 'entity', entity_id: id } as const);
};
const subjectOf = ({ scope, entity_id: id, entity_hash: hash }: Pick<Export, 'scope' | 'entity_id' | 'entity_hash'>) =>
  scope === 'tenant' ? (
    'The whole account'
  ) : (
    <span class="clip id" title={hash ?? undefined}>
      {id ?? `entity ${hash ?? ''}`}
    </span>
  );

function Report({ report }: { report: Deletion['report'] }): ComponentChildren {
  const found = Object.entries(report).filter(([, rows]) => rows > 0);
  return (
    <span class="muted wide">
      {found.length === 0
        ? 'nothing was there'
        : found.map(([name, rows]) => `${words(name).toLowerCase()} ${count(rows)}`).join(', ')}
    </span>
  );
}

export function Compliance() {
  const [open, setOpen] = useState<'export' | 'delete'>();
  const { act, failure } = useAct();
  const exports = useQuery({
    queryKey: ['exports'],
    queryFn: () => ok(api.GET('/compliance/exports', LATEST)),
    refetchInterval: 3_000,
  });
  const deletions = useQuery({
    queryKey: ['deletions'],
    queryFn: () => ok(api.GET('/compliance/deletions', LATEST)),
    refetchInterval: 3_000,
  });
  const close = () => {
    setOpen(undefined);
  };
  const fetchFile = (id: string) =>
    act(async () => {
      download(`${id}.zip`, 'application/zip', await (await raw(`/compliance/exports/${id}/download`)).arrayBuffer());
    });
  return (
    <>
      <PageHead
        title="Compliance"
        about="A copy of all that is stored, or its deletion: of one entity, or of the account."
      >
        <Button
          onClick={() => {
            setOpen('export');
          }}
        >
          Export data
        </Button>
        <Button
          kind="danger"
          onClick={() => {
            setOpen('delete');
          }}
        >
          Delete data
        </Button>
      </PageHead>
      {failure}
      <Card bare title="Exports">
        <Table<Export>
          label="exports"
          list={wholeList(exports.data?.data, exports)}
          keyOf={({ id }) => id}
          columns={[
            { title: 'Asked for', cell: ({ created_at: at }) => <Time at={at} /> },
            { title: 'Of', cell: subjectOf },
            {
              title: 'Status',
              cell: ({ status, error: reason }) => (
                <span class="row">
                  <Badge>{status}</Badge>
                  {reason !== null && <span class="muted">{reason}</span>}
                </span>
              ),
            },
            { title: 'Size', right: true, cell: ({ bytes: size }) => (size === null ? '–' : bytes(size)) },
            { title: 'Kept until', cell: ({ expires_at: at }) => <Time at={at} /> },
            {
              title: '',
              cell: ({ id, status }) =>
                status === 'completed' && <Button onClick={() => void fetchFile(id)}>Download</Button>,
            },
          ]}
          empty={
            <Empty
              title="No export yet"
              call={curl('/compliance/exports', { scope: 'entity', entity_id: 'visitor-1' })}
            />
          }
        />
      </Card>
      {/* The exports above may be few or many: what follows comes when their height is known. */}
      {!exports.isPending && (
        <Card bare title="Deletions">
          <Table<Deletion>
            label="deletions"
            list={wholeList(deletions.data?.data, deletions)}
            keyOf={({ id }) => id}
            columns={[
              { title: 'Asked for', cell: ({ created_at: at }) => <Time at={at} /> },
              { title: 'Of', cell: subjectOf },
              { title: 'Status', cell: ({ status }) => <Badge>{status}</Badge> },
              { title: 'Reason', cell: ({ reason }) => <span class="clip id">{reason ?? '–'}</span> },
              { title: 'Report', cell: ({ report }) => <Report report={report} /> },
              { title: 'Ended', cell: ({ completed_at: at }) => <Time at={at} /> },
            ]}
            empty={
              <Empty title="Nothing was deleted yet">
                A deletion ends with a report of what it found in each store.
              </Empty>
            }
          />
        </Card>
      )}
      {open === 'export' && (
        <FormDialog
          title="Export data"
          submit="Export"
          onClose={close}
          onSubmit={async (form) => {
            await ok(api.POST('/compliance/exports', { body: scopeOf(form) }));
            await queries.invalidateQueries({ queryKey: ['exports'] });
          }}
        >
          <Field label="Entity" name="entity_id" maxLength={256} hint="Empty: everything of the account." />
        </FormDialog>
      )}
      {open === 'delete' && (
        <FormDialog
          title="Delete data"
          submit="Delete for good"
          danger
          onClose={close}
          onSubmit={async (form) => {
            const reason = textOf(form, 'reason');
            const chosen = textOf(form, 'what') === 'tenant' ? ({ scope: 'tenant' } as const) : scopeOf(form);
            if (textOf(form, 'what') === 'entity' && chosen.scope === 'tenant')
              throw new Error('Name the entity whose data is to be deleted.');
            await ok(
              api.POST('/compliance/deletions', { body: { ...chosen, ...(reason === undefined ? {} : { reason }) } }),
            );
            await queries.invalidateQueries({ queryKey: ['deletions'] });
          }}
        >
          <Select
            label="What"
            name="what"
            options={[
              ['entity', 'One entity'],
              ['tenant', 'Everything of the account'],
            ]}
          />
          <Field label="Entity" name="entity_id" maxLength={256} />
          <Field label="Reason" name="reason" maxLength={500} />
          <p class="muted">
            Conversations, answers and files are deleted. What was booked stays, without the name of the entity.
          </p>
        </FormDialog>
      )}
    </>
  );
}

export function Audit() {
  const list = useList(['audit'], (page) => ok(api.GET('/compliance/audit_log', { params: { query: page } })));
  const [shown, setShown] = useState<Entry>();
  return (
    <>
      <PageHead title="Audit log" about="Who changed what in this account, and when." />
      <Card bare>
        <Table<Entry>
          label="audit log"
          list={list}
          keyOf={({ id }) => id}
          columns={[
            { title: 'Time', cell: ({ created_at: at }) => <Time at={at} /> },
            { title: 'Action', cell: ({ action }) => <strong>{action}</strong> },
            {
              title: 'On',
              cell: ({ target }) => (
                <code class="clip id" title={target}>
                  {target}
                </code>
              ),
            },
            {
              title: 'By',
              cell: ({ actor }) => (
                <code class="clip id muted" title={actor}>
                  {actor}
                </code>
              ),
            },
            { title: 'Mode', isMinor: true, cell: ({ mode }) => <Badge>{mode}</Badge> },
            {
              title: '',
              cell: (entry) => (
                <Button
                  kind="quiet"
                  aria-label={`Details of ${entry.action}`}
                  onClick={() => {
                    setShown(shown?.id === entry.id ? undefined : entry);
                  }}
                >
                  Details
                </Button>
              ),
            },
          ]}
          empty={
            <Empty title="Nothing was changed yet">Keys, webhooks, entities and purchases leave a line here.</Empty>
          }
        />
      </Card>
      {shown !== undefined && (
        <Card title={`Details of ${shown.action}`}>
          <Code text={JSON.stringify(shown, undefined, 2)} label="Details" />
        </Card>
      )}
    </>
  );
}
