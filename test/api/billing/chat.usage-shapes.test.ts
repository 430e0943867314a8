import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import request from 'supertest';

import { TOKEN_KINDS } from '../../../shared/contracts/events.ts';
import type { Usage } from '../../../shared/contracts/events.ts';
import { chatOf, ledgerOf, parseSse, postChat, waitFor } from '../../support/chat.ts';
import { postLines } from '../../support/batch-client.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';
import type { TestTenant } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';

const TEXT = 'Early this signal keeps the river.';
const COUNTS = { prompt_tokens: 20, completion_tokens: 8 };

/** What a provider of OpenAI's protocol sends of its usage: whole, or in the chunks behind its text. */
interface Shape {
  whole: object;
  chunks: object[];
  /** Its invoice. Undefined: it says nothing that can be true, so the service counts. */
  invoice: Usage | undefined;
  /** The Messages API's. */
  messages?: { begin: object; end: object };
}

const end = (more: object = {}) => ({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], ...more });
const alone = (usage: object): Shape['chunks'] => [end(), { choices: [], usage }];
const shapeOf = (usage: object, kinds: Partial<Usage> = {}): Shape => ({
  whole: { usage },
  chunks: alone(usage),
  invoice: { promptTokens: 20, completionTokens: 8, ...kinds },
});

const SHAPES: Record<string, Shape> = {
  'a usage-only chunk': shapeOf(COUNTS),
  'usage beside a choice': { ...shapeOf(COUNTS), chunks: [end({ usage: COUNTS })] },
  'a field of its own': {
    ...shapeOf(COUNTS),
    whole: { x_groq: { usage: COUNTS } },
    chunks: [end({ x_groq: { usage: COUNTS } })],
  },
  'two events': {
    ...shapeOf(COUNTS, { cachedTokens: 7, cacheWriteTokens: 4 }),
    messages: {
      begin: { input_tokens: 9, cache_read_input_tokens: 7, cache_creation_input_tokens: 4, output_tokens: 1 },
      end: { output_tokens: 8 },
    },
  },
  zero: { ...shapeOf({ prompt_tokens: 0, completion_tokens: 0 }), invoice: undefined },
  absent: { whole: {}, chunks: [end()], invoice: undefined },
  doubled: { ...shapeOf(COUNTS), chunks: [end({ usage: COUNTS }), { choices: [], usage: COUNTS }] },
  cached: shapeOf({ ...COUNTS, prompt_tokens_details: { cached_tokens: 12 } }, { cachedTokens: 12 }),
  'cache writes': shapeOf(
    { ...COUNTS, prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 5 } },
    { cachedTokens: 3, cacheWriteTokens: 5 },
  ),
  reasoning: shapeOf({ ...COUNTS, completion_tokens_details: { reasoning_tokens: 6 } }, { reasoningTokens: 6 }),
  audio: shapeOf(
    { ...COUNTS, prompt_tokens_details: { audio_tokens: 2 }, completion_tokens_details: { audio_tokens: 1 } },
    { promptAudioTokens: 2, completionAudioTokens: 1 },
  ),
  'numbers as text': shapeOf(
    { prompt_tokens: '20', completion_tokens: '8', prompt_tokens_details: { cached_tokens: '12', audio_tokens: null } },
    { cachedTokens: 12 },
  ),
};

const RATES = {
  prompt: 10,
  completion: 20,
  cached: 1,
  cache_write: 12.5,
  reasoning: 30,
  prompt_audio: 40,
  completion_audio: 0,
};
const COST = {
  currency: 'usd',
  prompt: 2,
  completion: 8,
  cached: 0.2,
  cache_write: 2.5,
  reasoning: 9,
  prompt_audio: 10,
};
type Prices = { prompt: number; completion: number } & Record<string, number | string>;

/** Prices by hand: each kind at its own rate, the rest of both counts at theirs. */
function priceBy({ prompt, completion, ...own }: Prices, usage: Usage): number {
  let [promptLeft, completionLeft, price] = [usage.promptTokens, usage.completionTokens, 0];
  for (const [kind, [count, , name]] of Object.entries(TOKEN_KINDS)) {
    const tokens = usage[kind as keyof typeof TOKEN_KINDS] ?? 0;
    const rate = own[name];
    if (typeof rate !== 'number') continue;
    price += tokens * rate;
    if (count === 'prompt') promptLeft -= tokens;
    else completionLeft -= tokens;
  }
  return price + promptLeft * prompt + completionLeft * completion;
}

const sse = (...events: unknown[]) =>
  events.map((event) => `data: ${event === '[DONE]' ? event : JSON.stringify(event)}\n\n`).join('');

function answerCompletions(res: ServerResponse, { whole, chunks }: Shape, isStream: boolean, isCut: boolean): void {
  if (!isStream) {
    res.end(JSON.stringify({ choices: [{ index: 0, message: { content: TEXT }, finish_reason: 'stop' }], ...whole }));
    return;
  }
  res.write(sse({ choices: [{ index: 0, delta: { content: TEXT } }] }));
  res.end(isCut ? '' : sse(...chunks, '[DONE]'));
}

function answerMessages(res: ServerResponse, usage: object, last: object, isStream: boolean, isCut: boolean): void {
  if (!isStream) {
    const content = [{ type: 'text', text: TEXT }];
    res.end(JSON.stringify({ content, stop_reason: 'end_turn', usage: { ...usage, ...last } }));
    return;
  }
  const text = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT } };
  res.write(sse({ type: 'message_start', message: { usage } }, text));
  const stop = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: last };
  res.end(isCut ? '' : sse(stop, { type: 'message_stop' }));
}

/** Prompts name the shape, and whether a stream of it is cut. */
const promptOf = (name: string, isCut = false) => `${name}${isCut ? ', cut' : ''}.`;
const modelOf = ({ messages }: Shape) => (messages === undefined ? 'mobius' : 'oloid');

const service = useService({ workers: 0 });
let server: ScriptedServer;
beforeAll(async () => {
  server = await startScriptedServer();
  server.answer((res) => {
    const body = JSON.parse(server.requests.at(-1)?.body ?? '') as {
      stream?: boolean;
      messages: { content: string }[];
    };
    const prompt = body.messages.at(-1)?.content ?? '';
    const [name = '', isCut] = prompt.slice(0, -1).split(', ');
    const shape = SHAPES[name];
    if (shape === undefined) throw new Error(`No shape is named ${name}`);
    const how = [body.stream === true, isCut !== undefined] as const;
    if (shape.messages === undefined) answerCompletions(res, shape, ...how);
    else answerMessages(res, shape.messages.begin, shape.messages.end, ...how);
  });
  const settings = { base_url: `${server.url}/v1`, max_retries: 0 };
  await service.setProvider({ kind: 'openai', ...settings }, 'completions');
  await service.setProvider({ kind: 'anthropic', ...settings }, 'messages');
  for (const [tier, provider] of [
    ['mobius', 'completions'],
    ['oloid', 'messages'],
  ] as const) {
    const tierBody = { rates: RATES, targets: [{ provider, model: 'm', cost: COST }] };
    expect((await service.admin('put', `/tiers/${tier}`, tierBody)).status).toBe(200);
  }
  await service.routesKnown();
  await service.startWorker();
});
afterAll(() => server.close());

type Ways = 'complete' | 'streamed' | 'batch';
const CREDITS = 1_000_000;

async function settled(tenantId: string, requests: number) {
  return waitFor(async () => {
    const rows = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
    return rows.length === requests ? rows : undefined;
  }, 'the bookings');
}

async function ask(tenant: TestTenant, way: Ways): Promise<void> {
  const bodies = Object.entries(SHAPES).map(([name, shape]) => chatOf(promptOf(name), { model: modelOf(shape) }));
  if (way === 'batch') {
    await postLines(
      service,
      tenant.key,
      bodies.map((body, index) => ({ custom_id: `line-${index}`, method: 'POST', url: '/v1/chat/completions', body })),
    );
    return;
  }
  for (const body of bodies) {
    const path = '/platform/v1/chat/completions';
    const call = { ...body, stream: way === 'streamed' };
    const response = await request(service.app).post(path).auth(tenant.key, { type: 'bearer' }).send(call);
    expect(response.status).toBe(200);
  }
}

describe('the usage of a provider, in all its shapes', () => {
  it.each(['complete', 'streamed', 'batch'] as const)('is booked as it is invoiced: %s', async (way) => {
    const tenant = await service.startTenant({ credits: CREDITS });
    const from = new Date().toISOString();

    await ask(tenant, way);

    const rows = await settled(tenant.tenantId, Object.keys(SHAPES).length);
    const invoices = Object.values(SHAPES).flatMap(({ invoice }) => (invoice === undefined ? [] : [invoice]));
    const believed = rows.filter(({ estimated }) => estimated !== true);
    const countsOf = (row: Usage) =>
      [
        row.promptTokens,
        row.completionTokens,
        ...Object.keys(TOKEN_KINDS).map((kind) => row[kind as keyof typeof TOKEN_KINDS] ?? 0),
      ].join(' ');
    expect(believed.map((row) => countsOf(row as Usage)).sort()).toEqual(invoices.map(countsOf).sort());
    // The money: ledger and balance, what it costs the operator, and the sums that both sides see.
    for (const row of rows) {
      expect(0 - row.amountMicro).toBe(Math.round(priceBy(RATES, row as Usage) * 1e6));
      expect(row.spend).toEqual({ currency: 'usd', nano: Math.round(priceBy(COST, row as Usage) * 1_000) });
    }
    const spent = rows.reduce((sum, row) => sum - row.amountMicro, 0) / 1e6;
    const account = await service.admin('get', `/tenants/${tenant.tenantId}`);
    expect(account.body).toMatchObject({ balance: CREDITS - spent, held: 0 });
    const usage = await apiOf(service, tenant.key)(
      'get',
      `/usage?start_time=${Math.floor(Date.parse(from) / 86_400_000) * 86_400}`,
    );
    const { data } = usage.body as { data: { results: object[] }[] };
    const [result] = data.flatMap(({ results }) => results);
    const sum = (kind: keyof Usage) => invoices.reduce((total, invoice) => total + Number(invoice[kind] ?? 0), 0);
    expect(result).toMatchObject({
      cached_tokens: sum('cachedTokens'),
      cache_write_tokens: sum('cacheWriteTokens'),
      prompt_audio_tokens: sum('promptAudioTokens'),
      reasoning_tokens: sum('reasoningTokens'),
      completion_audio_tokens: sum('completionAudioTokens'),
      credits: spent,
    });
  });

  it('is what the service counts where the stream is cut', async () => {
    const tenant = await service.startTenant();
    for (const [name, shape] of Object.entries(SHAPES)) {
      const path = '/platform/v1/chat/completions';
      const body = { ...chatOf(promptOf(name, true), { model: modelOf(shape) }), stream: true };
      await request(service.app).post(path).auth(tenant.key, { type: 'bearer' }).send(body);
      await service.resetBreakers();
    }

    const rows = await settled(tenant.tenantId, Object.keys(SHAPES).length);
    for (const row of rows) {
      expect(row).toMatchObject({ estimated: true, completionTokens: 7 });
      expect(row).not.toHaveProperty('cachedTokens');
      expect(0 - row.amountMicro).toBe(Math.round(priceBy(RATES, row as Usage) * 1e6));
    }
  });

  it('is told apart by kind in OpenAI’s form, and by two counts on the chat routes', async () => {
    const { key } = await service.startTenant();
    const post = (body: object) =>
      request(service.app).post('/platform/v1/chat/completions').auth(key, { type: 'bearer' }).send(body);
    const body = chatOf(promptOf('cache writes'));

    const complete = await post(body);
    const streamed = parseSse((await post({ ...body, stream: true })).text);
    const plain = await post(chatOf(promptOf('doubled')));
    const own = await postChat(service.app, key, body);

    const usage = {
      prompt_tokens: 20,
      completion_tokens: 8,
      total_tokens: 28,
      prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 5 },
    };
    expect(complete.body.usage).toEqual(usage);
    expect(streamed.findLast(({ chunk }) => chunk !== undefined)?.chunk).toMatchObject({ usage });
    expect(plain.body.usage).toEqual({ prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 });
    expect(own.body.usage).toEqual({ prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 });
    expect(await ledgerOf(service, own)).toMatchObject({ cachedTokens: 3, cacheWriteTokens: 5 });
  });
});
