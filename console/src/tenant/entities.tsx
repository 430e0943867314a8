import { useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import type { paths } from '../../public-api.d.ts';
import { ok, queries } from '../shell/api.ts';
import { navigate, useParams, withQuery } from '../shell/router.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { Field, textOf } from '../ui/field.tsx';
import { Button, Card, Code, CopyButton, Empty, ErrorBox, Facts, PageHead, Time } from '../ui/parts.tsx';
import { Table, useList } from '../ui/table.tsx';
import { toast } from '../ui/toast.tsx';
import { api, curl, useScope } from './api.ts';

type Entity = paths['/entities']['get']['responses'][200]['content']['application/json']['data'][number];

/** Ids of entities are any text, so they stand behind the path, where nothing has to be escaped twice. */
export const entityPath = (id: string) => withQuery('/entities/view', { id });

export function Entities() {
  const [isOpen, setOpen] = useState(false);
  const list = useList(['entities'], (page) => ok(api.GET('/entities', { params: { query: page } })));
  return (
    <>
      <PageHead title="Entities" about="Whose conversations the service remembers: the 50 latest messages of each.">
        <form
          class="row nowrap"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            const id = textOf(new FormData(event.currentTarget), 'id');
            if (id !== undefined) navigate(entityPath(id));
          }}
        >
          <input class="input" name="id" aria-label="Entity id" placeholder="Entity id" required />
          <button type="submit" class="button">
            Find
          </button>
        </form>
        <Button
          kind="primary"
          onClick={() => {
            setOpen(true);
          }}
        >
          Create an entity
        </Button>
      </PageHead>
      <Card bare>
        <Table<Entity>
          label="entities"
          list={list}
          keyOf={({ entity_id: id }) => id}
          columns={[
            {
              title: 'Entity',
              cell: ({ entity_id: id }) => (
                <Link href={entityPath(id)}>
                  <span class="clip">{id}</span>
                </Link>
              ),
            },
            { title: 'Name', cell: ({ name }) => <span class="clip">{name ?? '–'}</span> },
            { title: 'Subject', cell: ({ subject }) => <span class="clip">{subject ?? '–'}</span> },
            { title: 'Grade', cell: ({ grade }) => <span class="clip">{grade ?? '–'}</span> },
            { title: 'Created', cell: ({ created_at: at }) => <Time at={at} /> },
          ]}
          empty={
            <Empty
              title="No entity yet"
              call={curl('/chat', {
                entity_id: 'visitor-1',
                messages: [{ role: 'user', content: 'Remember that I like bridges.' }],
              })}
            >
              A request with an entity_id creates it, and continues its conversation.
            </Empty>
          }
        />
      </Card>
      {isOpen && (
        <FormDialog
          title="Create an entity"
          submit="Create"
          onClose={() => {
            setOpen(false);
          }}
          onSubmit={async (form) => {
            const id = textOf(form, 'entity_id') ?? '';
            const [name, subject, grade] = ['name', 'subject', 'grade'].map((field) => textOf(form, field));
            const body = {
              entity_id: id,
              ...(name === undefined ? {} : { name }),
              ...(subject === undefined ? {} : { subject }),
              ...(grade === undefined ? {} : { grade }),
            };
            await ok(api.POST('/entities', { body }));
            await queries.invalidateQueries({ queryKey: ['entities'] });
            navigate(entityPath(id));
          }}
        >
          <Field label="Entity id" name="entity_id" required maxLength={256} />
          <Field label="Name" name="name" />
          <Field label="Subject" name="subject" hint="Steers the answers, like the grade." />
          <Field label="Grade" name="grade" />
        </FormDialog>
      )}
    </>
  );
}

export function EntityPage() {
  const [{ id = '' }] = useParams();
  const [open, setOpen] = useState<'history' | 'entity'>();
  const mayStream = useScope('chat.stream');
  const path = { params: { path: { entity_id: id } } };
  const entity = useQuery({ queryKey: ['entity', id], queryFn: () => ok(api.GET('/entities/{entity_id}', path)) });
  const history = useQuery({
    queryKey: ['entity', id, 'history'],
    queryFn: () =>
      ok(
        api.GET('/entities/{entity_id}/history', {
          params: { path: { entity_id: id }, query: { limit: 50, order: 'asc' } },
        }),
      ),
    refetchInterval: 5_000,
  });
  const { data } = entity;
  return (
    <>
      <PageHead title={data?.name ?? 'Entity'} about={<code class="break">{id}</code>}>
        <CopyButton text={id} label="Copy id" />
        {mayStream && (
          <Link class="button" href={withQuery('/playground', { entity: id })}>
            Continue in the playground
          </Link>
        )}
        <Button
          kind="danger"
          onClick={() => {
            setOpen('history');
          }}
        >
          Erase history
        </Button>
        <Button
          kind="danger"
          onClick={() => {
            setOpen('entity');
          }}
        >
          Delete
        </Button>
      </PageHead>
      {entity.error !== null && <ErrorBox error={entity.error} />}
      {entity.error === null && (
        <div class="grid">
          <Card title="About it">
            <Facts
              rows={[
                ['Name', data?.name],
                ['Subject', data?.subject],
                ['Grade', data?.grade],
                ['Created', <Time key="c" at={data?.created_at} />],
              ]}
            />
          </Card>
          <Card title="Metadata">
            <Code text={JSON.stringify(data?.metadata ?? {}, undefined, 2)} label="Metadata" />
          </Card>
        </div>
      )}
      <Card title="Conversation">
        {history.error !== null && data !== undefined && <ErrorBox error={history.error} />}
        {history.data?.data.length === 0 && <p class="muted">Nothing is remembered yet.</p>}
        <div class="stack">
          {history.data?.data.map((message) => (
            <div key={message.id} class="stack tight">
              <span class="row small muted">
                <strong>{message.role}</strong> <Time at={message.created_at} />
                <Link href={`/requests/${message.request_id}`}>its request</Link>
              </span>
              <div class="bubble" data-role={message.role}>
                {message.content}
              </div>
            </div>
          ))}
        </div>
      </Card>
      {open !== undefined && (
        <FormDialog
          title={open === 'history' ? 'Erase the history' : 'Delete the entity'}
          submit={open === 'history' ? 'Erase' : 'Delete'}
          danger
          onClose={() => {
            setOpen(undefined);
          }}
          onSubmit={async () => {
            if (open === 'history') await ok(api.DELETE('/entities/{entity_id}/history', path));
            else await ok(api.DELETE('/entities/{entity_id}', path));
            toast(open === 'history' ? 'The history is erased' : 'The entity is deleted');
            await queries.invalidateQueries({ queryKey: open === 'history' ? ['entity', id] : ['entities'] });
            if (open === 'entity') navigate('/entities');
          }}
        >
          <p>
            {open === 'history'
              ? 'Everything that was said is forgotten, for good.'
              : 'The entity and everything that was said are deleted, for good.'}
          </p>
        </FormDialog>
      )}
    </>
  );
}
