import { useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import type { paths } from '../../public-api.d.ts';
import { ok, queries } from '../shell/api.ts';
import { navigate } from '../shell/router.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { Checks, Field, numberOf, textOf, textsOf } from '../ui/field.tsx';
import { duration } from '../ui/format.ts';
import { Badge, Button, Card, CopyButton, Empty, ErrorBox, Facts, PageHead, Time, useAct } from '../ui/parts.tsx';
import { Table, useList } from '../ui/table.tsx';
import { toast } from '../ui/toast.tsx';
import { api, curl } from './api.ts';
import { ShownOnce } from './keys.tsx';

type Webhook = paths['/webhooks']['get']['responses'][200]['content']['application/json']['data'][number];
type Delivery =
  paths['/webhooks/{webhook_id}/deliveries']['get']['responses'][200]['content']['application/json']['data'][number];

const EVENTS = [
  'chat.completed',
  'chat.failed',
  'batch.completed',
  'credits.purchased',
  'credits.low',
  'credits.depleted',
  'budget.threshold_reached',
  'budget.exceeded',
  'key.created',
  'key.revoked',
  'key.expiring',
  'moderation.flagged',
  'entity.deleted',
  'compliance.export.completed',
  'compliance.deletion.completed',
  'webhook.disabled',
] as const;
const refresh = () => queries.invalidateQueries({ queryKey: ['webhooks'] });

const fieldsOf = (form: FormData) => ({
  url: textOf(form, 'url') ?? '',
  events: textsOf(form, 'events'),
  description: textOf(form, 'description') ?? '',
});

function WebhookFields({ hook }: { hook?: Webhook }) {
  return (
    <>
      <Field
        label="Address"
        name="url"
        type="url"
        required
        defaultValue={hook?.url}
        placeholder="https://example.com/events"
      />
      <Field label="Description" name="description" maxLength={500} defaultValue={hook?.description} />
      <Checks label="Events" name="events" options={EVENTS} chosen={hook?.events ?? ['batch.completed']} />
    </>
  );
}

export function Webhooks() {
  const [isOpen, setOpen] = useState(false);
  const [secret, setSecret] = useState<string>();
  const list = useList(['webhooks'], (page) => ok(api.GET('/webhooks', { params: { query: page } })));
  return (
    <>
      <PageHead title="Webhooks" about="Events posted to your server, signed after Standard Webhooks.">
        <Button
          kind="primary"
          onClick={() => {
            setOpen(true);
          }}
        >
          Create a webhook
        </Button>
      </PageHead>
      <Card bare>
        <Table<Webhook>
          label="webhooks"
          list={list}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Address',
              cell: ({ id, url }) => (
                <Link href={`/webhooks/${id}`}>
                  <span class="clip">{url}</span>
                </Link>
              ),
            },
            {
              title: 'Status',
              cell: ({ status, failing_since: since }) => (
                <Badge tone={since === null ? undefined : 'failed'}>{since === null ? status : 'failing'}</Badge>
              ),
            },
            { title: 'Events', cell: ({ events }) => <span class="clip muted">{events.join(', ')}</span> },
            { title: 'Created', cell: ({ created_at: at }) => <Time at={at} /> },
          ]}
          empty={
            <Empty
              title="No webhook yet"
              call={curl('/webhooks', {
                url: 'https://example.com/events',
                events: ['batch.completed', 'credits.low'],
              })}
            >
              The service posts an event to your address when it happens, and tries again for a day if that fails.
            </Empty>
          }
        />
      </Card>
      {isOpen && (
        <FormDialog
          title="Create a webhook"
          submit="Create"
          onClose={() => {
            setOpen(false);
          }}
          onSubmit={async (form) => {
            const made = await ok(api.POST('/webhooks', { body: fieldsOf(form) }));
            await refresh();
            setSecret(made.secret);
          }}
        >
          <WebhookFields />
        </FormDialog>
      )}
      {secret !== undefined && (
        <ShownOnce
          title="The signing secret"
          value={secret}
          onClose={() => {
            setSecret(undefined);
          }}
        />
      )}
    </>
  );
}

function Deliveries({ id }: { id: string }) {
  const list = useList(
    ['webhooks', id, 'deliveries'],
    (page) => ok(api.GET('/webhooks/{webhook_id}/deliveries', { params: { path: { webhook_id: id }, query: page } })),
    { refetchInterval: 2_000 },
  );
  const { act, failure } = useAct();
  const redeliver = async (deliveryId: string) => {
    const path = { webhook_id: id, delivery_id: deliveryId };
    await ok(api.POST('/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver', { params: { path } }));
    await queries.invalidateQueries({ queryKey: ['webhooks', id, 'deliveries'] });
    toast('Sent again');
  };
  return (
    <Card bare title="Deliveries">
      {failure && <div class="body">{failure}</div>}
      <Table<Delivery>
        label="deliveries"
        list={list}
        keyOf={({ id: delivery }) => delivery}
        columns={[
          { title: 'Time', cell: ({ created_at: at }) => <Time at={at} /> },
          {
            title: 'Event',
            cell: ({ event_type: type, event_id: event }) => (
              <span class="row">
                <strong>{type}</strong>
                <code class="muted clip id" title={event}>
                  {event}
                </code>
              </span>
            ),
          },
          { title: 'Status', cell: ({ status }) => <Badge>{status}</Badge> },
          {
            title: 'Last attempt',
            cell: ({ attempts }) => {
              const last = attempts.at(-1);
              if (last === undefined) return <span class="muted">none yet</span>;
              return (
                <span class="clip" title={last.error ?? undefined}>
                  {last.status_code ?? last.error ?? 'no answer'} in {duration(last.duration_ms)}
                </span>
              );
            },
          },
          { title: 'Attempts', right: true, cell: ({ attempts }) => attempts.length },
          {
            title: '',
            cell: ({ id: delivery, event_type: type }) => (
              <Button onClick={() => void act(() => redeliver(delivery))}>
                Redeliver<span class="visually-hidden"> {type}</span>
              </Button>
            ),
          },
        ]}
        empty={<Empty title="Nothing was sent yet">Send a test event to see one.</Empty>}
      />
    </Card>
  );
}

export function WebhookPage({ params: { id = '' } }: { params: { id?: string } }) {
  const [open, setOpen] = useState<'edit' | 'rotate' | 'delete'>();
  const [secret, setSecret] = useState<string>();
  const { act, failure } = useAct();
  const path = { params: { path: { webhook_id: id } } };
  const hook = useQuery({
    queryKey: ['webhooks', id],
    queryFn: () => ok(api.GET('/webhooks/{webhook_id}', path)),
    refetchInterval: 5_000,
  });
  const { data } = hook;
  const close = () => {
    setOpen(undefined);
  };
  const change = (action: () => Promise<unknown>, done: string) =>
    act(async () => {
      await action();
      await refresh();
      toast(done);
    });
  const isActive = data?.status === 'active';
  return (
    <>
      <PageHead title="Webhook" about={<code class="break">{data?.url ?? id}</code>}>
        <CopyButton text={id} label="Copy id" />
        <Button
          kind="primary"
          onClick={() =>
            void change(() => ok(api.POST('/webhooks/{webhook_id}/test', path)), 'A test event is on its way')
          }
        >
          Send a test event
        </Button>
        <Button
          disabled={data === undefined}
          onClick={() =>
            void change(
              () =>
                ok(
                  api.PATCH('/webhooks/{webhook_id}', { ...path, body: { status: isActive ? 'disabled' : 'active' } }),
                ),
              isActive ? 'Disabled' : 'Enabled',
            )
          }
        >
          {isActive ? 'Disable' : 'Enable'}
        </Button>
        {(['edit', 'rotate', 'delete'] as const).map((action) => (
          <Button
            key={action}
            kind={action === 'delete' ? 'danger' : undefined}
            onClick={() => {
              setOpen(action);
            }}
          >
            {{ edit: 'Change', rotate: 'Rotate secret', delete: 'Delete' }[action]}
          </Button>
        ))}
      </PageHead>
      {failure}
      {hook.error !== null && <ErrorBox error={hook.error} />}
      {data !== undefined && (
        <Card title="The webhook">
          <Facts
            rows={[
              [
                'Status',
                <span key="s" class="row">
                  <Badge>{data.status}</Badge>
                  {data.disabled_reason !== null && <span class="muted">because of: {data.disabled_reason}</span>}
                </span>,
              ],
              ['Failing since', <Time key="f" at={data.failing_since} />],
              ['Description', data.description],
              ['Events', data.events.join(', ')],
              ['Created', <Time key="c" at={data.created_at} />],
            ]}
          />
        </Card>
      )}
      {!hook.isPending && <Deliveries id={id} />}
      {open === 'edit' && data !== undefined && (
        <FormDialog
          title="Change the webhook"
          submit="Save"
          onClose={close}
          onSubmit={async (form) => {
            await ok(api.PATCH('/webhooks/{webhook_id}', { ...path, body: fieldsOf(form) }));
            await refresh();
          }}
        >
          <WebhookFields hook={data} />
        </FormDialog>
      )}
      {open === 'rotate' && (
        <FormDialog
          title="Rotate the secret"
          submit="Rotate"
          onClose={close}
          onSubmit={async (form) => {
            const hours = numberOf(form, 'hours') ?? 0;
            const made = await ok(
              api.POST('/webhooks/{webhook_id}/rotate_secret', {
                ...path,
                body: { grace_seconds: Math.round(hours * 3_600) },
              }),
            );
            setSecret(made.secret);
          }}
        >
          <Field
            label="The old secret signs, too, for hours"
            name="hours"
            type="number"
            min={0}
            max={168}
            step="any"
            defaultValue="24"
          />
        </FormDialog>
      )}
      {open === 'delete' && (
        <FormDialog
          title="Delete the webhook"
          submit="Delete"
          danger
          onClose={close}
          onSubmit={async () => {
            await ok(api.DELETE('/webhooks/{webhook_id}', path));
            await refresh();
            navigate('/webhooks');
          }}
        >
          <p>No further event is sent to this address.</p>
        </FormDialog>
      )}
      {secret !== undefined && (
        <ShownOnce
          title="The signing secret"
          value={secret}
          onClose={() => {
            setSecret(undefined);
          }}
        />
      )}
    </>
  );
}
