import { useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { ok, queries } from '../shell/api.ts';
import { navigate } from '../shell/router.ts';
import { Dialog, FormDialog } from '../ui/dialog.tsx';
import { Checks, Field, numberOf, Select, textOf, textsOf } from '../ui/field.tsx';
import { compact, count } from '../ui/format.ts';
import { Badge, Button, Card, Code, CopyButton, Empty, ErrorBox, Facts, PageHead, Time } from '../ui/parts.tsx';
import { Table, useList } from '../ui/table.tsx';
import { toast } from '../ui/toast.tsx';
import { api, curl, mayUse, useOwnKey } from './api.ts';
import type { ApiKey, Scope } from './api.ts';

/** Every scope stands here, or it does not compile: a form would take a scope that it does not show from a key. */
const SCOPES = Object.keys({
  '*': true,
  chat: true,
  'chat.stream': true,
  embeddings: true,
  keys: true,
  usage: true,
  webhooks: true,
  entities: true,
  billing: true,
  compliance: true,
} satisfies Record<Scope, true>) as Scope[];
const refresh = () => queries.invalidateQueries({ queryKey: ['keys'] });
const DAY = 86_400;

/** Shows a secret once. It is in no storage: after this it cannot be seen again. */
export function ShownOnce({ title, value, onClose }: { title: string; value: string; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="sheet">
        <h2>{title}</h2>
        <p class="muted">Copy it to where it is used. It is shown this once and cannot be read again.</p>
        <Code text={value} label="The value" />
        <div class="actions">
          <Button kind="primary" onClick={onClose}>
            I have copied it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function Limits({ row }: { row?: ApiKey | undefined }) {
  return (
    <div class="grid">
      <Field
        label="Requests a minute"
        name="rpm"
        type="number"
        min={1}
        placeholder={row ? String(row.limits.rpm) : 'as the account'}
      />
      <Field
        label="Tokens a minute"
        name="tpm"
        type="number"
        min={1}
        placeholder={row ? String(row.limits.tpm) : 'as the account'}
      />
      <Field
        label="Requests a day"
        name="daily_requests"
        type="number"
        min={0}
        placeholder={row ? String(row.limits.daily_requests) : '0: no limit'}
      />
    </div>
  );
}

const settingsOf = (form: FormData) => {
  const [rpm, tpm, daily] = ['rpm', 'tpm', 'daily_requests'].map((name) => numberOf(form, name));
  return {
    ...(rpm === undefined ? {} : { rpm }),
    ...(tpm === undefined ? {} : { tpm }),
    ...(daily === undefined ? {} : { daily_requests: daily }),
    scopes: textsOf(form, 'scopes') as Scope[],
  };
};

function NewKey({
  own,
  onClose,
  onMade,
}: {
  own: ApiKey | undefined;
  onClose: () => void;
  onMade: (value: string) => void;
}) {
  const offered = SCOPES.filter((scope) => mayUse(own, scope));
  return (
    <FormDialog
      title="Create a key"
      submit="Create"
      onClose={onClose}
      onSubmit={async (form) => {
        const days = numberOf(form, 'days');
        const body = {
          name: textOf(form, 'name') ?? '',
          mode: (textOf(form, 'mode') ?? 'live') as 'live' | 'test',
          ...settingsOf(form),
          ...(days === undefined ? {} : { expires_in_seconds: days * DAY }),
        };
        const made = await ok(api.POST('/keys', { body }));
        await refresh();
        if (made.value !== undefined) onMade(made.value);
      }}
    >
      <Field label="Name" name="name" maxLength={200} placeholder="Homework helper" />
      <Select
        label="Mode"
        name="mode"
        hint="Test keys are not billed."
        options={
          own?.mode === 'test'
            ? [['test', 'Test']]
            : [
                ['live', 'Live'],
                ['test', 'Test'],
              ]
        }
      />
      <Checks label="Scopes" name="scopes" options={offered} chosen={offered.includes('*') ? ['*'] : offered} />
      <Limits />
      <Field label="Expires after days" name="days" type="number" min={1} max={3_650} placeholder="never" />
    </FormDialog>
  );
}

export function Keys() {
  const own = useOwnKey();
  const [isOpen, setOpen] = useState(false);
  const [value, setValue] = useState<string>();
  const list = useList(['keys'], (page) => ok(api.GET('/keys', { params: { query: page } })));
  return (
    <>
      <PageHead title="API keys" about="A key never grants more than the key that creates it has.">
        <Button
          kind="primary"
          onClick={() => {
            setOpen(true);
          }}
        >
          Create a key
        </Button>
      </PageHead>
      <Card bare>
        <Table<ApiKey>
          label="keys"
          list={list}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Name',
              width: 18,
              cell: ({ id, name }) => (
                <Link href={`/keys/${id}`}>
                  <span class="clip">{name === '' ? 'Without a name' : name}</span>
                </Link>
              ),
            },
            { title: 'Value', width: 17, isMinor: true, cell: ({ redacted_value: text }) => <code>{text}</code> },
            { title: 'Mode', width: 8.5, cell: ({ mode }) => <Badge>{mode}</Badge> },
            { title: 'Status', width: 10.5, cell: ({ status }) => <Badge>{status}</Badge> },
            {
              title: 'Scopes',
              width: 12,
              isMinor: true,
              cell: ({ scopes }) => (
                <span class="clip muted">{scopes.includes('*') ? 'everything' : scopes.join(', ')}</span>
              ),
            },
            {
              title: 'A minute',
              right: true,
              width: 18.5,
              isMinor: true,
              cell: ({ limits: { rpm, tpm } }) => `${count(rpm)} req, ${compact(tpm)} tok`,
            },
            {
              title: 'Last used',
              width: 15.5,
              isMinor: true,
              cell: ({ last_used_at: at }) => <Time at={at} absent="never" />,
            },
          ]}
          empty={<Empty title="No key" call={curl('/keys', { name: 'Homework helper', scopes: ['chat'] })} />}
        />
      </Card>
      {isOpen && (
        <NewKey
          own={own}
          onMade={setValue}
          onClose={() => {
            setOpen(false);
          }}
        />
      )}
      {value !== undefined && (
        <ShownOnce
          title="The new key"
          value={value}
          onClose={() => {
            setValue(undefined);
          }}
        />
      )}
    </>
  );
}

export function KeyPage({ params: { id = '' } }: { params: { id?: string } }) {
  const own = useOwnKey();
  const [open, setOpen] = useState<'edit' | 'rotate' | 'revoke'>();
  const [value, setValue] = useState<string>();
  const path = { params: { path: { key_id: id } } };
  const key = useQuery({ queryKey: ['keys', id], queryFn: () => ok(api.GET('/keys/{key_id}', path)) });
  const { data } = key;
  const close = () => {
    setOpen(undefined);
  };
  const isOwn = own?.id === id;
  return (
    <>
      <PageHead title={data?.name === '' ? 'Key without a name' : (data?.name ?? 'Key')} about={<code>{id}</code>}>
        <CopyButton text={id} label="Copy id" />
        {(data === undefined || data.status === 'active') &&
          (['edit', 'rotate', 'revoke'] as const).map((action) => (
            <Button
              key={action}
              kind={action === 'revoke' ? 'danger' : undefined}
              disabled={data === undefined}
              onClick={() => {
                setOpen(action);
              }}
            >
              {{ edit: 'Change', rotate: 'Rotate', revoke: 'Revoke' }[action]}
            </Button>
          ))}
      </PageHead>
      {key.error !== null && <ErrorBox error={key.error} />}
      {data !== undefined && (
        <div class="grid">
          <Card title="The key">
            <Facts
              rows={[
                ['Status', <Badge key="s">{data.status}</Badge>],
                ['Mode', <Badge key="m">{data.mode}</Badge>],
                ['Value', <code key="v">{data.redacted_value}</code>],
                ['Scopes', data.scopes.includes('*') ? 'everything' : data.scopes.join(', ')],
                ['Created', <Time key="c" at={data.created_at} />],
                ['Last used', <Time key="l" at={data.last_used_at} absent="never" />],
                ['Expires', <Time key="e" at={data.expires_at} absent="never" />],
                ...(data.previous_value_expires_at === null
                  ? []
                  : [['Old value works until', <Time key="p" at={data.previous_value_expires_at} />] as const]),
              ]}
            />
          </Card>
          <Card title="Limits" actions={<Link href={`/requests?key_id=${id}`}>Its requests</Link>}>
            <Facts
              rows={[
                ['Requests a minute', count(data.limits.rpm)],
                ['Tokens a minute', count(data.limits.tpm)],
                ['Requests a day', data.limits.daily_requests === 0 ? 'no limit' : count(data.limits.daily_requests)],
              ]}
            />
          </Card>
        </div>
      )}
      {open === 'edit' && data !== undefined && (
        <FormDialog
          title="Change the key"
          submit="Save"
          onClose={close}
          onSubmit={async (form) => {
            await ok(
              api.PATCH('/keys/{key_id}', { ...path, body: { name: textOf(form, 'name') ?? '', ...settingsOf(form) } }),
            );
            await refresh();
            toast('Saved');
          }}
        >
          <Field label="Name" name="name" maxLength={200} defaultValue={data.name} />
          <Checks label="Scopes" name="scopes" options={SCOPES} chosen={data.scopes} />
          <Limits row={data} />
        </FormDialog>
      )}
      {open === 'rotate' && (
        <FormDialog
          title="Rotate the key"
          submit="Rotate"
          onClose={close}
          onSubmit={async (form) => {
            const made = await ok(
              api.POST('/keys/{key_id}/rotate', {
                ...path,
                body: { grace_seconds: Math.round((numberOf(form, 'hours') ?? 0) * 3_600) },
              }),
            );
            await refresh();
            if (made.value !== undefined) setValue(made.value);
          }}
        >
          <p class="muted">
            It gets a new value. {isOwn && 'You are signed in with it: sign in again with the new value.'}
          </p>
          <Field
            label="The old value works for hours"
            name="hours"
            type="number"
            min={0}
            max={168}
            step="any"
            defaultValue="24"
          />
        </FormDialog>
      )}
      {open === 'revoke' && (
        <FormDialog
          title="Revoke the key"
          submit="Revoke"
          danger
          onClose={close}
          onSubmit={async () => {
            await ok(api.DELETE('/keys/{key_id}', path));
            await refresh();
            toast('Revoked');
            navigate('/keys');
          }}
        >
          <p>
            It stops working everywhere within a second, for good.
            {isOwn && ' You are signed in with it: this ends your session.'}
          </p>
        </FormDialog>
      )}
      {value !== undefined && (
        <ShownOnce
          title="The new value"
          value={value}
          onClose={() => {
            setValue(undefined);
          }}
        />
      )}
    </>
  );
}
