import { setTimeout as pause } from 'node:timers/promises';

import { formatTable } from '../../../scripts/bench/format-table.ts';
import { createBatchClient } from '../client/batch-client.ts';
import { USAGE_SHAPES } from '../../../scripts/simulated-provider/usage-shape.ts';
import { KIND_NAMES } from '../../../shared/contracts/events.ts';
import type { TokenKinds, Usage } from '../../../shared/contracts/events.ts';
import { estimateUsage } from '../../../workers/pipeline/spending.ts';
import type { Tenant } from '../client/caller.ts';
import type { Evidence } from '../checker/evidence.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, range } from './findings.ts';

/** 10,032 requests, and 288. */
const TIMES = { full: 209, small: 6 } as const;
/** The twelfth is of Anthropic's protocol. */
const SHAPES = [...USAGE_SHAPES, 'two_events'] as const;
type Shape = (typeof SHAPES)[number];
const WAYS = ['complete', 'streamed', 'cut', 'batch'] as const;
type Way = (typeof WAYS)[number];

const CLIENTS = 32;
const BATCH_MS = 600_000;
/** Until every process has the routes. */
const ROUTED_MS = 1_500;
const MODEL = 'sim?chunks=8&chunk_ms=2';

interface Asked {
  shape: Shape;
  way: Way;
  /** Of its number, so that no two are alike. */
  prompt: string;
}

interface Answered extends Asked {
  id: string;
  text: string;
}

const nameOf = ({ shape, way }: Asked) =>
  `${shape === 'two_events' ? 'messages' : 'completions'}-${way === 'cut' ? 'cut' : 'whole'}`;

function askedOf(size: keyof typeof TIMES): Asked[] {
  const cells = SHAPES.flatMap((shape) => WAYS.map((way) => ({ shape, way })));
  return range(TIMES[size], (time) =>
    cells.map(({ shape, way }, cell) => ({
      shape,
      way,
      prompt: `Question ${time * cells.length + cell}: simulate-usage=${shape === 'two_events' ? 'cached' : shape}`,
    })),
  ).flat();
}

/** Publishes a name for each protocol, whole and cut. No breaker opens for what is cut on purpose. */
async function route(lab: Lab): Promise<void> {
  const api = lab.admin();
  const settings = { base_url: `${lab.providerUrl}/v1`, max_retries: 0, breaker: { min_attempts: 1_000_000 } };
  const kinds = { completions: 'simulated', messages: 'anthropic' };
  const models = { whole: MODEL, cut: `${MODEL}&fail=truncate&fail_after=5` };
  const targets = Object.keys(kinds).flatMap((provider) =>
    Object.values(models).map((model) => ({ provider, model, max_in_flight: 64 })),
  );
  for (const [provider, kind] of Object.entries(kinds))
    await api.send('PUT', `/admin/v1/providers/${provider}`, { kind, ...settings });
  // The rates of the lab.
  await api.send('PUT', '/admin/v1/tiers/mobius', { rates: { prompt: 1, completion: 1 }, targets });
  for (const provider of Object.keys(kinds))
    for (const [how, model] of Object.entries(models))
      await api.send('PUT', `/admin/v1/models/${provider}-${how}`, { tier: 'mobius', target: { provider, model } });
  await pause(ROUTED_MS, undefined, { signal: lab.signal });
}

const bodyOf = (asked: Asked) => ({ model: nameOf(asked), messages: [{ role: 'user', content: asked.prompt }] });

interface Answer {
  id?: string;
  choices?: { message?: { content?: string | null }; delta?: { content?: string | null } }[];
}

async function ask(lab: Lab, { key }: Tenant, asked: Asked, number: number): Promise<Answered> {
  const stream = asked.way !== 'complete';
  const response = await fetch(`${lab.urlOf(number)}/platform/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...bodyOf(asked), stream }),
    signal: lab.signal,
  });
  const body = await response.text();
  const said = stream ? [...body.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => data) : [body];
  const parts = said.map((json) => JSON.parse(json) as Answer);
  const text = parts.map(({ choices: [choice] = [] }) => (choice?.message ?? choice?.delta)?.content ?? '').join('');
  return { ...asked, id: parts[0]?.id ?? '', text };
}

async function askInBatch(lab: Lab, { key }: Tenant, all: readonly Asked[]): Promise<Answered[]> {
  const batches = createBatchClient({ url: () => `${lab.urlOf(0)}/platform/v1`, key, signal: lab.signal });
  const lines = all.map((asked, index) => ({
    custom_id: `line-${index}`,
    method: 'POST',
    url: '/v1/chat/completions',
    body: bodyOf(asked),
  }));
  const { id } = await batches.submit(lines);
  await lab.waitFor(async () => (await batches.find(id)).status === 'completed', 'the batch to complete', BATCH_MS);
  const results = new Map((await batches.results(id)).map((result) => [result.custom_id, result]));
  return all.map((asked, index) => {
    const { request_id: requestId = '', response } = results.get(`line-${index}`) ?? {};
    return { ...asked, id: requestId, text: response?.choices?.[0]?.message.content ?? '' };
  });
}

/** The counts in one line, so that they compare. */
function countsOf(promptTokens: number, completionTokens: number, kinds: TokenKinds = {}): number[] {
  return [promptTokens, completionTokens, ...KIND_NAMES.map((name) => kinds[name] ?? 0)];
}

/** True where the provider says what an answer took; else the service counts the text that it has sent. */
const isInvoiced = ({ shape, way }: Asked) => way !== 'cut' && shape !== 'zero' && shape !== 'absent';

interface Cell {
  requests: number;
  tokens: number;
  /** The sum of the differences, over all counts and kinds. */
  drift: number;
}

function compare(
  answers: readonly (Answered & { counted: Usage })[],
  { provider, ledger }: Evidence,
): Map<string, Cell> {
  const booked = Map.groupBy(ledger, ({ requestId }) => requestId ?? '');
  const cells = new Map<string, Cell>();
  for (const answered of answers) {
    const { shape, way, id, counted } = answered;
    const rows = booked.get(id) ?? [];
    const told = isInvoiced(answered) ? provider.get(id) : counted;
    const kinds = isInvoiced(answered) ? provider.get(id)?.kinds : {};
    const invoice = countsOf(told?.promptTokens ?? 0, told?.completionTokens ?? 0, kinds);
    const sums = countsOf(0, 0).map((_, index) =>
      rows.reduce((sum, row) => sum + (countsOf(row.promptTokens, row.completionTokens, row.kinds)[index] ?? 0), 0),
    );
    const cell = cells.get(`${shape} ${way}`) ?? { requests: 0, tokens: 0, drift: 0 };
    cell.requests += rows.length;
    cell.tokens += (sums[0] ?? 0) + (sums[1] ?? 0);
    cell.drift += sums.reduce((sum, count, index) => sum + Math.abs(count - (invoice[index] ?? 0)), 0);
    cells.set(`${shape} ${way}`, cell);
  }
  return cells;
}

function tableOf(cells: ReadonlyMap<string, Cell>): string {
  const rows = SHAPES.map((shape) => [
    shape,
    ...WAYS.map((way) => {
      const { requests = 0, tokens = 0, drift = NaN } = cells.get(`${shape} ${way}`) ?? {};
      return `${requests}: ${tokens} tokens, drift ${drift}`;
    }),
  ]);
  return ['', ...formatTable(['', ...WAYS], rows)].join('\n');
}

/** R6: the rates of the kinds are compared by test/api/chat/chat.usage-shapes.test.ts. */
export const usageShapes: Experiment = {
  name: 'R6',
  title: 'twelve shapes of usage, complete, streamed, cut and in a batch: the book against the invoice',
  lab: { provider: 'chunks=8' },
  async run(lab, size) {
    await route(lab);
    const tenant = await lab.openTenant(100_000_000);
    const all = askedOf(size);
    const inBatch = askInBatch(
      lab,
      tenant,
      all.filter(({ way }) => way === 'batch'),
    );
    const left = all.filter(({ way }) => way !== 'batch').entries();
    const answers: Answered[] = [];
    const client = async () => {
      for (const [number, asked] of left) answers.push(await ask(lab, tenant, asked, number));
    };
    await Promise.all(range(CLIENTS, client));
    answers.push(...(await inBatch));
    const counted = await Promise.all(
      answers.map(async (answered) => {
        const messages = [{ role: 'user' as const, content: answered.prompt }];
        return { ...answered, counted: await estimateUsage(messages, answered.text, Infinity) };
      }),
    );
    const empty = answers.filter(({ id, text }) => id === '' || text === '').length;
    return {
      verdicts: [expectThat('every request has text', empty === 0, `${empty} have none`)],
      judge: (evidence) => {
        const rows = evidence.ledger.filter(({ type }) => type === 'usage').length;
        const off = [...compare(counted, evidence)].filter(([, { drift }]) => drift !== 0);
        return [
          expectThat('one charge for each', rows === all.length, `${rows} charges of ${all.length} requests`),
          { name: 'no drift', faults: off.map(([cell, { drift }]) => `${cell}: ${drift} tokens`) },
        ];
      },
      measure: (evidence) => ({ [`${TIMES[size]} requests in each cell`]: tableOf(compare(counted, evidence)) }),
    };
  },
};
