import { useQuery, useQueryClient } from '@tanstack/preact-query';
import { useMemo, useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { ok } from '../shell/api.ts';
import { Chart, toSeries } from '../ui/chart.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { Field, numberOf, textOf } from '../ui/field.tsx';
import { compact, count, credits } from '../ui/format.ts';
import { Badge, Button, Card, CopyButton, Empty, ErrorBox, Facts, PageHead, Stat, Time } from '../ui/parts.tsx';
import { Table, useList } from '../ui/table.tsx';
import type { Column } from '../ui/table.tsx';
import { toast } from '../ui/toast.tsx';
import { api, useMayWrite } from './api.ts';
import type { Schemas } from './api.ts';

type Tenant = Schemas['Tenant'];
type Deed = 'limits' | 'credits' | 'suspend' | 'close';

/** Limits that an operator changes by hand, with the words for them. */
const LIMITS = {
  rpm: 'Requests a minute of a key',
  tpm: 'Tokens a minute of a key',
  daily_requests: 'Requests a day of a key; 0: no limit',
  tenant_rpm: 'Requests a minute, all keys; empty: no ceiling',
  tenant_tpm: 'Tokens a minute, all keys; empty: no ceiling',
  max_in_flight: 'Requests at once, all keys; empty: no ceiling',
  monthly_token_budget: 'Tokens a month; empty: no budget',
  weight: 'Share of the workers while requests wait',
} as const satisfies Partial<Record<keyof Tenant, string>>;
type Limit = keyof typeof LIMITS;
const LIMIT_NAMES = Object.keys(LIMITS) as Limit[];
const NULLABLE: ReadonlySet<Limit> = new Set(['tenant_rpm', 'tenant_tpm', 'max_in_flight', 'monthly_token_budget']);

/** The form of a deed, which is done when it is sent. */
function DeedDialog({ deed, tenant, onClose }: { deed: Deed; tenant: Tenant; onClose: () => void }) {
  const queries = useQueryClient();
  /** A form that is sent again, because its answer was lost, books once. */
  const [bookingKey] = useState(() => crypto.randomUUID());
  const params = { params: { path: { tenant_id: tenant.id } } };
  const done = async (call: Promise<unknown>, text: string) => {
    await call;
    toast(text);
    await queries.invalidateQueries();
  };
  const change = (body: Schemas['TenantChanges'], text: string) =>
    done(api.PATCH('/tenants/{tenant_id}', { ...params, body }), text);
  switch (deed) {
    case 'limits':
      return (
        <FormDialog
          title="Limits"
          submit="Save"
          onClose={onClose}
          onSubmit={(form) => {
            const values = LIMIT_NAMES.map((name) => [name, numberOf(form, name) ?? null] as const);
            const changed = values.filter(
              ([name, value]) => value !== tenant[name] && (value !== null || NULLABLE.has(name)),
            );
            return change(Object.fromEntries(changed), 'The limits hold from the next request on');
          }}
        >
          {LIMIT_NAMES.map((name) => (
            <Field
              key={name}
              label={LIMITS[name]}
              name={name}
              type="number"
              min="0"
              step="any"
              defaultValue={tenant[name] ?? ''}
            />
          ))}
        </FormDialog>
      );
    case 'credits':
      return (
        <FormDialog
          title="Grant or take credits"
          submit="Book"
          onClose={onClose}
          onSubmit={(form) => {
            const reason = textOf(form, 'reason');
            const body = { credits: numberOf(form, 'credits') ?? 0, ...(reason === undefined ? {} : { reason }) };
            const header = { 'Idempotency-Key': bookingKey };
            return done(
              api.POST('/tenants/{tenant_id}/credits', { params: { ...params.params, header }, body }),
              'It stands in the ledger',
            );
          }}
        >
          <Field label="Credits" name="credits" type="number" step="any" required hint="Below zero takes them away." />
          <Field label="Reason" name="reason" hint="The tenant sees it in the ledger." />
        </FormDialog>
      );
    case 'suspend': {
      const isActive = tenant.status === 'active';
      return (
        <FormDialog
          title={isActive ? `Suspend ${tenant.name}?` : `Let ${tenant.name} in again?`}
          submit={isActive ? 'Suspend' : 'Reactivate'}
          danger={isActive}
          onClose={onClose}
          onSubmit={() =>
            change({ status: isActive ? 'suspended' : 'active' }, isActive ? 'Suspended' : 'Active again')
          }
        >
          <p>
            {isActive
              ? 'Every call of its keys is refused from now on; running requests end.'
              : 'Its keys are served again at once.'}
          </p>
        </FormDialog>
      );
    }
    case 'close':
      return (
        <FormDialog
          title={`Close ${tenant.name}?`}
          submit="Close for good"
          danger
          onClose={onClose}
          onSubmit={(form) => {
            if (textOf(form, 'id') !== tenant.id) throw new Error('This is not the id of the tenant.');
            return done(api.DELETE('/tenants/{tenant_id}', params), 'Closed; its data is being erased');
          }}
        >
          <p>
            Its keys stop, its conversations are erased, and it cannot be opened again. The ledger stays as the law
            asks.
          </p>
          <Field label={`To close it, enter ${tenant.id}`} name="id" required />
        </FormDialog>
      );
  }
}

/** Requests and credits by day since the beginning of the month. */
function Spend({ id }: { id: string }) {
  const query = useQuery({
    queryKey: ['usage', 'tenant', id],
    queryFn: () =>
      ok(api.GET('/usage', { params: { query: { tenant_id: [id], group_by: ['tier'], bucket_width: '1d' } } })),
  });
  const buckets = query.data?.data;
  const { moments, series } = useMemo(
    () =>
      toSeries(
        buckets ?? [],
        ({ tier }) => tier ?? 'none',
        (result) => result.credits,
      ),
    [buckets],
  );
  return (
    <Card title="Credits spent by day, this month">
      {buckets?.every(({ results }) => results.length === 0) === true ? (
        <Empty title="Nothing was spent this month." />
      ) : (
        <Chart label="Credits spent by day and tier" moments={moments} series={series} format={compact} />
      )}
    </Card>
  );
}

type Entry = Schemas['AdminTransaction'];
const LEDGER_COLUMNS: Column<Entry>[] = [
  { title: 'When', cell: ({ created_at: at }) => <Time at={at} /> },
  { title: 'Type', cell: ({ type }) => <Badge>{type}</Badge> },
  { title: 'Credits', right: true, cell: ({ credits: change }) => credits(change) },
  { title: 'Balance after', right: true, cell: ({ balance_after: after }) => credits(after) },
  {
    title: 'For',
    cell: ({ request_id: request, purchase_id: purchase, reason }) =>
      request === null ? (
        <span class="clip">{reason ?? purchase ?? ''}</span>
      ) : (
        <Link class="mono" href={`/requests/${request}`}>
          {request}
        </Link>
      ),
  },
  {
    title: 'Cost',
    right: true,
    cell: ({ cost, currency }) => (cost === null ? '' : `${credits(cost)} ${currency?.toUpperCase() ?? ''}`),
  },
];

function Ledger({ id }: { id: string }) {
  const list = useList<Entry>(['transactions', id], (query) =>
    ok(api.GET('/tenants/{tenant_id}/transactions', { params: { path: { tenant_id: id }, query } })),
  );
  return (
    <Card title="Ledger" bare>
      <Table
        label="Ledger"
        columns={LEDGER_COLUMNS}
        list={list}
        keyOf={(entry) => entry.id}
        empty={
          <Empty
            title="Nothing was granted, bought or spent yet."
            call={`parley tenants grant ${id} 10000 --key first-grant`}
          />
        }
      />
    </Card>
  );
}

const countOf = (value: number | null | undefined) => (value === null || value === undefined ? null : count(value));

const DEEDS: readonly (readonly [Deed, (tenant: Tenant | undefined) => string])[] = [
  ['limits', () => 'Limits'],
  ['credits', () => 'Credits'],
  ['suspend', (tenant) => (tenant?.status === 'suspended' ? 'Reactivate' : 'Suspend')],
  ['close', () => 'Close'],
];

export function TenantPage({ params: { id } }: { params: { id: string } }) {
  const mayWrite = useMayWrite();
  const [deed, setDeed] = useState<Deed>();
  const query = useQuery({
    queryKey: ['tenants', id],
    queryFn: () => ok(api.GET('/tenants/{tenant_id}', { params: { path: { tenant_id: id } } })),
  });
  const tenant = query.data;
  return (
    <>
      <PageHead title={tenant?.name ?? 'Tenant'} about={<code>{id}</code>}>
        <CopyButton text={id} label="Copy id" />
        {mayWrite &&
          tenant?.status !== 'closed' &&
          DEEDS.map(([name, label]) => (
            <Button
              key={name}
              kind={name === 'close' ? 'danger' : undefined}
              disabled={tenant === undefined}
              onClick={() => {
                setDeed(name);
              }}
            >
              {label(tenant)}
            </Button>
          ))}
      </PageHead>
      {query.error !== null && tenant === undefined && (
        <ErrorBox error={query.error} retry={() => void query.refetch()} />
      )}
      <div class="stats">
        <Stat label="Balance" value={tenant && credits(tenant.balance)} tone="money" note="credits" />
        <Stat label="Held" value={tenant && credits(tenant.held)} note="by requests in progress" />
        <Stat
          label="Status"
          value={tenant && <Badge>{tenant.status}</Badge>}
          note={<Link href={`/requests?tenant_id=${id}`}>Its requests</Link>}
        />
      </div>
      <Spend id={id} />
      {query.error === null && (
        <Card title="Settings">
          <Facts
            rows={[
              ...LIMIT_NAMES.map((name) => [LIMITS[name].replace(/;.*/, ''), countOf(tenant?.[name])] as const),
              ['Default tier', tenant?.default_model],
              [
                'If a caller leaves',
                tenant && (tenant.on_disconnect === 'cancel' ? 'its request is cancelled' : 'its request goes on'),
              ],
              ['Answers stay', tenant?.retention_seconds && `${count(tenant.retention_seconds)} s`],
              ['Shard', tenant?.shard],
              ['Since', <Time at={tenant?.created_at} />],
            ]}
          />
        </Card>
      )}
      <Ledger id={id} />
      {deed !== undefined && tenant !== undefined && (
        <DeedDialog
          deed={deed}
          tenant={tenant}
          onClose={() => {
            setDeed(undefined);
          }}
        />
      )}
    </>
  );
}
