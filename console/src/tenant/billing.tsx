import { useQuery } from '@tanstack/preact-query';
import { Link } from 'wouter-preact';

import type { paths } from '../../public-api.d.ts';
import { ok, queries } from '../shell/api.ts';
import { useParams } from '../shell/router.ts';
import { Field, numberOf, Select } from '../ui/field.tsx';
import { count, credits, exact, money, share } from '../ui/format.ts';
import { Badge, Button, Card, Empty, ErrorBox, Meter, PageHead, Stat, Time, useAct } from '../ui/parts.tsx';
import { Table, useList, wholeList } from '../ui/table.tsx';
import { api, useOwnKey } from './api.ts';

const usePurchases = () =>
  useQuery({
    queryKey: ['billing', 'purchases'],
    queryFn: () => ok(api.GET('/billing/purchases', { params: { query: { limit: 10 } } })),
  });

type Checkout = paths['/billing/checkout/{checkout_id}']['get']['responses'][200]['content']['application/json'];
type Transaction =
  paths['/billing/transactions']['get']['responses'][200]['content']['application/json']['data'][number];
type Purchase = paths['/billing/purchases']['get']['responses'][200]['content']['application/json']['data'][number];

/** Where the buyer comes back to: this page. The id of the checkout is not known before it exists, so the tab keeps it. */
const CHECKOUT = 'parley-checkout';
const pageUrl = (outcome: string) => `${location.origin}${location.pathname}#/billing?checkout=${outcome}`;

async function buy(what: { package_id: string } | { credits: number }): Promise<void> {
  const body = { ...what, success_url: pageUrl('paid'), cancel_url: pageUrl('cancelled') };
  const checkout = await ok(api.POST('/billing/checkout', { body: body as never }));
  sessionStorage.setItem(CHECKOUT, checkout.id);
  if (checkout.url !== null) location.assign(checkout.url);
}

function Offers() {
  const { act, failure } = useAct();
  const offers = useQuery({
    queryKey: ['packages'],
    queryFn: () => ok(api.GET('/billing/packages', { params: { query: { limit: 100, order: 'asc' } } })),
  });
  const { data } = offers;
  if (offers.error !== null) return <ErrorBox error={offers.error} />;
  if (data?.data.length === 0 && data.price_per_million_credits === null)
    return <Empty title="Nothing is sold here">An administrator grants credits, or sets a price list.</Empty>;
  return (
    <div class="stack">
      {failure}
      <div class="offers">
        {data?.data.map(({ id, name, credits: amount, amount: price, currency }) => (
          <div key={id} class="offer">
            <h3>{name}</h3>
            <span class="price">{money(price, currency)}</span>
            <span class="muted small">{credits(amount)} credits</span>
            <Button kind="primary" onClick={() => void act(() => buy({ package_id: id }))}>
              Buy<span class="visually-hidden"> {name}</span>
            </Button>
          </div>
        ))}
        {data !== undefined && data.price_per_million_credits !== null && (
          <form
            class="offer"
            onSubmit={(event) => {
              event.preventDefault();
              const amount = numberOf(new FormData(event.currentTarget), 'credits') ?? 0;
              void act(() => buy({ credits: amount }));
            }}
          >
            <Field
              label="Any amount of credits"
              name="credits"
              type="number"
              min={1}
              required
              defaultValue="1000000"
              hint={`${money(data.price_per_million_credits, data.currency)} for a million`}
            />
            <button type="submit" class="button">
              Buy
            </button>
          </form>
        )}
      </div>
    </div>
  );
}

/** What became of the checkout that the buyer comes back from. Its notice may come a moment after the buyer. */
function CheckoutNotice({ outcome }: { outcome: string }) {
  const id = sessionStorage.getItem(CHECKOUT);
  const checkout = useQuery({
    queryKey: ['checkout', id],
    enabled: id !== null,
    queryFn: async (): Promise<Checkout> => {
      const found = await ok(
        api.GET('/billing/checkout/{checkout_id}', { params: { path: { checkout_id: id ?? '' } } }),
      );
      if (found.status === 'completed') void queries.invalidateQueries({ queryKey: ['billing'] });
      return found;
    },
    refetchInterval: ({ state: { data } }) =>
      data?.status === 'open' || data?.status === 'processing' ? 1_000 : false,
  }).data;
  if (checkout === undefined) return null;
  const isPaid = checkout.status === 'completed';
  return (
    <div class="notice" data-tone={isPaid ? 'success' : 'waiting'} role="status">
      <span class="row">
        <Badge>{checkout.status}</Badge>
        {isPaid
          ? `${credits(checkout.credits)} credits were bought for ${money(checkout.amount, checkout.currency)}.`
          : outcome === 'cancelled'
            ? 'The checkout was left without paying.'
            : 'The payment is being confirmed.'}
      </span>
    </div>
  );
}

function Transactions() {
  const [{ type }, change] = useParams();
  const list = useList(['billing', 'transactions', type], (page) =>
    ok(
      api.GET('/billing/transactions', {
        params: { query: { ...page, ...(type === undefined ? {} : { type: type as Transaction['type'] }) } },
      }),
    ),
  );
  return (
    <Card
      bare
      title="Transactions"
      actions={
        <Select
          label="Type"
          value={type ?? ''}
          onChange={(event) => {
            change({ type: event.currentTarget.value, after: undefined, before: undefined }, { replace: true });
          }}
          options={[
            ['', 'Any'],
            ['purchase', 'Purchase'],
            ['grant', 'Grant'],
            ['usage', 'Usage'],
            ['adjustment', 'Adjustment'],
          ]}
        />
      }
    >
      <Table<Transaction>
        label="transactions"
        list={list}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Time', cell: ({ created_at: at }) => <Time at={at} /> },
          { title: 'Type', cell: ({ type: of }) => <Badge>{of}</Badge> },
          {
            title: 'For',
            cell: ({ request_id: id, reason }) =>
              id === null ? (
                (reason ?? '–')
              ) : (
                <Link class="mono" href={`/requests/${id}`}>
                  {id}
                </Link>
              ),
          },
          {
            title: 'Credits',
            right: true,
            cell: ({ credits: amount }) => (
              <span class={amount > 0 ? 'money' : undefined} title={exact(amount)}>
                {amount > 0 ? '+' : ''}
                {credits(amount)}
              </span>
            ),
          },
          {
            title: 'Balance',
            right: true,
            cell: ({ balance_after: after }) => <span title={exact(after)}>{credits(after)}</span>,
          },
        ]}
        empty={<Empty title="No transaction yet">Purchases, grants and the cost of requests are listed here.</Empty>}
      />
    </Card>
  );
}

function Purchases({ purchases }: { purchases: ReturnType<typeof usePurchases> }) {
  return (
    <Card bare title="Purchases">
      <Table<Purchase>
        label="purchases"
        list={wholeList(purchases.data?.data, purchases)}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Time', cell: ({ created_at: at }) => <Time at={at} /> },
          { title: 'Purchase', cell: ({ id }) => <code>{id}</code> },
          {
            title: 'Credits',
            right: true,
            cell: ({ credits: amount }) => <span class="money">{credits(amount)}</span>,
          },
          { title: 'Paid', right: true, cell: ({ amount, currency }) => money(amount, currency) },
          {
            title: 'Refunded',
            right: true,
            cell: ({ refunded_amount: amount, currency }) => (amount === 0 ? '–' : money(amount, currency)),
          },
        ]}
        empty={<Empty title="Nothing bought yet">Credits that are bought above are listed here.</Empty>}
      />
    </Card>
  );
}

export function Billing() {
  const [{ checkout }] = useParams();
  const isTest = useOwnKey()?.mode === 'test';
  const billing = useQuery({ queryKey: ['billing'], queryFn: () => ok(api.GET('/billing')), refetchInterval: 10_000 });
  const purchases = usePurchases();
  const { data } = billing;
  const limit = data?.budget.limit ?? undefined;
  const part = data === undefined || limit === undefined ? 0 : data.budget.used / Math.max(1, limit);
  return (
    <>
      <PageHead
        title="Billing"
        about="A credit is one token at rate 1. Requests hold what they may cost, and are charged what they used."
      />
      {checkout !== undefined && <CheckoutNotice outcome={checkout} />}
      {billing.error !== null && <ErrorBox error={billing.error} />}
      <div class="stats">
        <Stat label="Balance" value={data && credits(data.balance)} tone="money" note="credits" />
        <Stat label="Held" value={data && credits(data.held)} note="by requests that run" />
        <Stat label="Available" value={data && credits(data.available)} note="for further requests" />
        <Stat
          label="Budget of this month"
          value={data && (limit === undefined ? 'none' : share(part))}
          note={
            data && (
              <>
                {limit !== undefined && <Meter value={part} label={`${share(part)} of the budget is used`} />}
                {count(data.budget.used)} {limit === undefined ? 'tokens used' : `of ${count(limit)} tokens`}
              </>
            )
          }
        />
      </div>
      <Card title="Buy credits">
        {isTest ? <Empty title="Test keys buy nothing">Sign in with a live key to buy credits.</Empty> : <Offers />}
      </Card>
      <Purchases purchases={purchases} />
      {/* The purchases above may be few or many: what follows comes when their height is known. */}
      {!purchases.isPending && <Transactions />}
    </>
  );
}
