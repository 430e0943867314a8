import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { SimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';
import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';
import type { ProviderClient, Usage } from '../../support/provider-client.ts';
import { createProviderClient, MESSAGES, PROMPT_TOKENS, until } from '../../support/provider-client.ts';

let provider: SimulatedProvider;
let client: ProviderClient;
let url: string;

beforeEach(async () => {
  provider = createSimulatedProvider();
  ({ url } = await provider.listen());
  client = createProviderClient(url);
});

afterEach(() => provider.close());

describe('an answer', () => {
  it('is the same complete, streamed and from another server', async () => {
    const { choices } = await client.complete('sim');
    const streamed = await client.stream('sim');
    const other = createSimulatedProvider();
    const { url: otherUrl } = await other.listen();
    const elsewhere = await createProviderClient(otherUrl).complete('sim');
    await other.close();

    expect(streamed.text).toBe(choices[0]?.message.content);
    expect(elsewhere.choices).toEqual(choices);
  });

  it('is streamed as OpenAI does: role, text, finish, usage without choices, [DONE]', async () => {
    const { events } = await client.stream('sim?chunks=2&text=Hello+World');
    const chunks = events.slice(0, -1).map((event): unknown => JSON.parse(event));
    const choice = (delta: object, reason: string | null) => ({
      object: 'chat.completion.chunk',
      model: 'sim',
      choices: [{ index: 0, delta, finish_reason: reason }],
      usage: null,
    });

    expect(chunks).toMatchObject([
      choice({ role: 'assistant', content: '' }, null),
      choice({ content: 'Hello' }, null),
      choice({ content: ' World' }, null),
      choice({}, 'stop'),
      { choices: [], usage: { prompt_tokens: PROMPT_TOKENS, completion_tokens: 2, total_tokens: PROMPT_TOKENS + 2 } },
    ]);
    expect(events.at(-1)).toBe('[DONE]');
  });
});

describe('the books', () => {
  it('equal the usage that was reported, in sum and by request id', async () => {
    const usages: (Usage | null | undefined)[] = [];
    for (let call = 0; call < 5; call++) {
      usages.push((await client.complete('sim', { seed: call }, { headers: { 'X-Request-Id': 'req_a' } })).usage);
      usages.push((await client.stream('sim', { seed: call }, { headers: { 'X-Request-Id': 'req_b' } })).usage);
    }
    const sum = (name: keyof Usage, parity: number[]) =>
      usages.filter((_, index) => parity.includes(index % 2)).reduce((total, usage) => total + (usage?.[name] ?? 0), 0);
    const counts = (calls: number, parity: number[]) => ({
      calls,
      completed: calls,
      prompt_tokens: sum('prompt_tokens', parity),
      completion_tokens: sum('completion_tokens', parity),
    });

    const stats = JSON.parse(await (await fetch(`${url}/stats`)).text());
    expect(stats).toMatchObject(counts(10, [0, 1]));
    expect(stats.by_request).toMatchObject({ req_a: counts(5, [0]), req_b: { ...counts(5, [1]), messages_last: 1 } });
  });

  it('show the messages that a request brought, and forget all with a reset', async () => {
    await client.complete('sim', {}, { headers: { 'X-Request-Id': 'req a/1' } });
    const path = `${url}/stats/requests/req%20a%2F1`;

    expect(await (await fetch(path)).json()).toMatchObject({ request_id: 'req a/1', calls: 1, messages: MESSAGES });
    await client.post('/stats/reset', '');
    expect((await fetch(path)).status).toBe(404);
    expect(await (await fetch(`${url}/stats?detail=0`)).json()).toEqual({
      ...{ calls: 0, completed: 0, failed: 0, aborted: 0, prompt_tokens: 0, completion_tokens: 0 },
      ...{ in_flight: 0, rejected: 0, moderations: 0 },
    });
  });

  it('count a stream that its reader left as aborted, with the text that was sent', async () => {
    const leave = new AbortController();
    const response = await client.chat('sim?chunks=40&chunk_ms=5', { stream: true }, { signal: leave.signal });
    await until(() => provider.stats().completion_tokens > 0);
    leave.abort();
    await expect(response.text()).rejects.toThrow();
    await until(() => provider.stats().in_flight === 0);

    const { aborted, prompt_tokens: prompt, completion_tokens: completion } = provider.stats();
    expect({ aborted, prompt }).toEqual({ aborted: 1, prompt: PROMPT_TOKENS });
    expect(completion).toBeLessThan(60);
  });
});

describe('Anthropic’s protocol', () => {
  const ask = async (fields: object) => {
    const body = {
      model: 'sim?text=Hello+World',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'Hi' }],
      ...fields,
    };
    return fetch(`${url}/v1/messages`, { method: 'POST', body: JSON.stringify(body) });
  };

  it('is spoken as the real one does, event by event', async () => {
    const text = await (await ask({ stream: true, system: 'Be brief.' })).text();
    const events = text.split('\n\n').map((event) => /^event: (.*)\ndata: (.*)$/.exec(event)?.slice(1) ?? []);

    expect(events.map(([name]) => name)).toEqual([
      ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop'],
      ...['message_delta', 'message_stop', undefined],
    ]);
    expect(events.slice(0, -1).map(([, data = '']) => JSON.parse(data) as unknown)).toMatchObject([
      { type: 'message_start', message: { role: 'assistant', content: [], usage: { input_tokens: 15 } } },
      { index: 0, content_block: { type: 'text', text: '' } },
      { index: 0, delta: { type: 'text_delta', text: 'Hello World' } },
      { index: 0 },
      { delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 15, output_tokens: 2 } },
      {},
    ]);
  });

  it('has its own errors', async () => {
    const refused = await ask({ max_tokens: undefined });
    const failed = await ask({ model: 'sim?fail=status&status=529' });

    expect([refused.status, failed.status]).toEqual([400, 529]);
    expect(await refused.json()).toMatchObject({ type: 'error', error: { message: 'max_tokens is required.' } });
    expect(await failed.json()).toMatchObject({ type: 'error', error: { type: 'server_error' } });
  });
});
