import { useQueryClient } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';

import { ok } from '../shell/api.ts';
import { count, exact, share } from '../ui/format.ts';
import { Badge, Button, Card, Empty, ErrorBox, PageHead, Time, useAct } from '../ui/parts.tsx';
import { Table, wholeList } from '../ui/table.tsx';
import type { Column, List } from '../ui/table.tsx';
import { toast } from '../ui/toast.tsx';
import { api, useMayWrite, useProviders, useTiers } from './api.ts';
import type { Schemas } from './api.ts';

type Provider = Schemas['Provider'];
type Tier = Schemas['Tier'];
type Target = Tier['targets'][number];

/** Calls at once and their bound, by model; '' without any figure. */
const capacityOf = ({ capacity }: Provider): string =>
  (capacity ?? [])
    .map(({ model, in_flight: now, ceiling, source, waiting }) => {
      const most = ceiling === null ? '' : ` of ${count(ceiling)}${source === 'found' ? ' (found)' : ''}`;
      return `${model === null ? '' : `${model}: `}${count(now)}${most}${waiting ? ', others wait' : ''}`;
    })
    .join('; ');

function Actions({
  provider,
  act,
  onResult,
}: {
  provider: Provider;
  act: ReturnType<typeof useAct>['act'];
  onResult: (result: Schemas['ProviderTestResult']) => void;
}) {
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const { name } = provider;
  const path = { params: { path: { provider: name } } };
  const test = async () => {
    setBusy(true);
    try {
      onResult(await ok(api.POST('/providers/{provider}/test', { ...path, body: {} })));
    } finally {
      setBusy(false);
    }
  };
  const reset = async () => {
    await api.POST('/breakers/{provider}/reset', path);
    toast(`${name} is called again`);
    await queries.invalidateQueries();
  };
  const isShut = provider.breaker_state !== null && provider.breaker_state !== 'closed';
  return (
    <span class="row">
      <Button disabled={isBusy} onClick={() => void act(test)}>
        {isBusy ? 'Calling …' : 'Try a call'}
      </Button>
      {isShut && (
        <Button kind="danger" onClick={() => void act(reset)}>
          Reset breaker
        </Button>
      )}
    </span>
  );
}

function ProviderTable({ list }: { list: List<Provider> }) {
  const mayWrite = useMayWrite();
  const { act, failure } = useAct();
  const [result, setResult] = useState<{ name: string } & Schemas['ProviderTestResult']>();
  const columns: Column<Provider>[] = [
    { title: 'Provider', cell: ({ name }) => <strong>{name}</strong> },
    {
      title: 'Breaker',
      cell: ({ breaker_state: state }) => (
        <Badge tone={state === 'open' ? 'failed' : undefined}>{state ?? 'unknown'}</Badge>
      ),
    },
    { title: 'Kind', cell: ({ kind }) => kind },
    { title: 'Address', cell: ({ base_url: url }) => <code class="clip">{url}</code> },
    { title: 'Calls at once', cell: (provider) => <span class="clip">{capacityOf(provider)}</span> },
    { title: 'Changed', cell: ({ updated_at: at }) => <Time at={at} /> },
    {
      title: '',
      cell: (provider) =>
        mayWrite && (
          <Actions
            provider={provider}
            act={act}
            onResult={(found) => {
              setResult({ ...found, name: provider.name });
            }}
          />
        ),
    },
  ];
  return (
    <Card title="Providers" bare>
      {failure && <div class="body">{failure}</div>}
      {result !== undefined && (
        <p class="notice" data-tone={result.ok ? 'success' : 'failed'} role="status">
          {`${result.name}: ${result.message} (${count(result.ms)} ms${result.model === null ? '' : `, ${result.model}`})`}
        </p>
      )}
      <Table
        label="Providers"
        columns={columns}
        list={list}
        keyOf={({ name }) => name}
        empty={
          <Empty title="No provider yet." call="PUT /admin/v1/providers/{name}">
            A provider is whoever makes the answers: any server that speaks OpenAI’s or Anthropic’s protocol.
          </Empty>
        }
      />
    </Card>
  );
}

interface Plan {
  target: Target;
  /** Share of the requests that call it first; undefined: it is called after others. */
  first: number | undefined;
  why: string;
  isSkipped: boolean;
}

/** Which target the next request would call, and why: the rules of the router, read from settings and breakers. */
function planOf({ targets }: Tier, providers: readonly Provider[]): Plan[] {
  const stateOf = (name: string) => providers.find((each) => each.name === name)?.breaker_state;
  const isOpen = ({ provider }: Target) => stateOf(provider) === 'open';
  const open = targets.filter((target) => !isOpen(target));
  const best = Math.min(...open.map(({ priority }) => priority));
  const drawn = open.filter(({ priority }) => priority === best);
  const weights = drawn.reduce((sum, { weight }) => sum + weight, 0);
  return [...targets]
    .sort((a, b) => a.priority - b.priority || b.weight - a.weight)
    .map((target) => {
      if (isOpen(target)) return { target, first: undefined, why: 'skipped: its breaker is open', isSkipped: true };
      if (target.priority > best)
        return { target, first: undefined, why: 'called if those before it fail', isSkipped: false };
      if (target.weight === 0 && weights > 0)
        return {
          target,
          first: undefined,
          why: 'weight 0: called if the others of its priority fail',
          isSkipped: false,
        };
      const first = weights === 0 ? 1 / drawn.length : target.weight / weights;
      const probe = stateOf(target.provider) === 'half_open' ? '; its breaker lets single calls through' : '';
      return { target, first, why: `drawn by its weight among priority ${target.priority}${probe}`, isSkipped: false };
    });
}

const costOf = ({ cost }: Target) =>
  cost === null ? 'unknown' : `${exact(cost.prompt)} / ${exact(cost.completion)} ${cost.currency.toUpperCase()}`;

const PLAN_COLUMNS: Column<Plan>[] = [
  { title: 'Target', cell: ({ target }) => <span class="clip">{`${target.provider} ${target.model}`}</span> },
  { title: 'Called first by', right: true, cell: ({ first }) => (first === undefined ? '' : share(first)) },
  { title: 'Why', cell: ({ why, isSkipped }) => <span class={isSkipped ? 'muted' : undefined}>{why}</span> },
  { title: 'Window', right: true, cell: ({ target }) => count(target.context_window) },
  { title: 'Cost of a million tokens', cell: ({ target }) => costOf(target) },
];

export function Providers() {
  const providers = useProviders();
  const tiers = useTiers();
  const all = providers.data?.data;
  return (
    <>
      <PageHead title="Providers" about="Who makes the answers, and which of them the next request would call." />
      <ProviderTable list={wholeList(all, providers)} />
      {tiers.error !== null && <ErrorBox error={tiers.error} retry={() => void tiers.refetch()} />}
      {/* A plan needs the state of the breakers, which the providers have. */}
      {(all === undefined ? undefined : tiers.data)?.data.map((tier) => (
        <Card
          key={tier.id}
          title={`Tier ${tier.id}`}
          bare
          actions={
            <span class="muted">
              {`version ${tier.version}, ${exact(tier.rates.prompt)} / ${exact(tier.rates.completion)} credits a token`}
            </span>
          }
        >
          <Table
            label={`Targets of ${tier.id}`}
            columns={PLAN_COLUMNS}
            list={wholeList(planOf(tier, all ?? []), tiers)}
            keyOf={({ target }) => `${target.provider} ${target.model} ${target.priority}`}
            empty={
              <Empty title="No target: every request of this tier fails." call={`PUT /admin/v1/tiers/${tier.id}`} />
            }
          />
        </Card>
      ))}
    </>
  );
}
