import { useQueryClient } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { ok } from '../shell/api.ts';
import { navigate, useParams } from '../shell/router.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { Field, numberOf, textOf } from '../ui/field.tsx';
import { compact, count, credits } from '../ui/format.ts';
import { Badge, Button, Card, Empty, PageHead, Time } from '../ui/parts.tsx';
import { Table, useList } from '../ui/table.tsx';
import type { Column } from '../ui/table.tsx';
import { api, useMayWrite } from './api.ts';
import type { Schemas } from './api.ts';

type Tenant = Schemas['Tenant'];

const COLUMNS: Column<Tenant>[] = [
  {
    title: 'Tenant',
    width: 19,
    cell: ({ id, name }) => (
      <Link href={`/tenants/${id}`}>
        <strong class="clip">{name}</strong>
      </Link>
    ),
  },
  {
    title: 'Status',
    width: 11,
    cell: ({ status }) => <Badge tone={status === 'closed' ? 'failed' : undefined}>{status}</Badge>,
  },
  {
    title: 'Id',
    width: 15,
    isMinor: true,
    cell: ({ id }) => (
      <code class="clip id" title={id}>
        {id}
      </code>
    ),
  },
  { title: 'Balance', right: true, width: 13, cell: ({ balance }) => credits(balance) },
  { title: 'Held', right: true, width: 9, isMinor: true, cell: ({ held }) => credits(held) },
  {
    title: 'A minute',
    right: true,
    width: 17.5,
    isMinor: true,
    cell: ({ rpm, tpm }) => `${count(rpm)} req, ${compact(tpm)} tok`,
  },
  { title: 'Since', width: 15.5, isMinor: true, cell: ({ created_at: at }) => <Time at={at} /> },
];

function NewTenant({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const create = async (form: FormData) => {
    const granted = numberOf(form, 'credits');
    const body = { name: textOf(form, 'name') ?? '', ...(granted === undefined ? {} : { credits: granted }) };
    const { id } = await ok(api.POST('/tenants', { body }));
    await queries.invalidateQueries({ queryKey: ['tenants'] });
    navigate(`/tenants/${id}`);
  };
  return (
    <FormDialog title="New tenant" submit="Create" onClose={onClose} onSubmit={create}>
      <Field label="Name" name="name" required hint="For people." />
      <Field label="Credits" name="credits" type="number" min="0" step="any" hint="Granted at once; none by default." />
    </FormDialog>
  );
}

export function Tenants() {
  const mayWrite = useMayWrite();
  const [isNew, setNew] = useState(false);
  const [{ name }, change] = useParams();
  const filter = name === undefined || name === '' ? {} : { name };
  const list = useList<Tenant>(['tenants', filter], (query) =>
    ok(api.GET('/tenants', { params: { query: { ...query, ...filter } } })),
  );
  return (
    <>
      <PageHead title="Tenants" about="Who uses the service, with what they have left and may ask for.">
        {mayWrite && (
          <Button
            kind="primary"
            onClick={() => {
              setNew(true);
            }}
          >
            New tenant
          </Button>
        )}
      </PageHead>
      <div class="filters">
        <Field
          label="Name"
          placeholder="a part of it"
          value={name ?? ''}
          onChange={(event: Event) => {
            const { value } = event.target as HTMLInputElement;
            change({ name: value, after: undefined, before: undefined }, { replace: true });
          }}
        />
      </div>
      <Card bare>
        <Table
          label="Tenants"
          columns={COLUMNS}
          list={list}
          keyOf={({ id }) => id}
          empty={
            <Empty
              title={name === undefined ? 'No tenant yet.' : 'No tenant has this in its name.'}
              call="parley tenants create NAME --credits 10000"
            />
          }
        />
      </Card>
      {isNew && (
        <NewTenant
          onClose={() => {
            setNew(false);
          }}
        />
      )}
    </>
  );
}
