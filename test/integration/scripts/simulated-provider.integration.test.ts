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

  it('has no usage event in a stream that did not ask for it', async () => {
    const { events, usage } = await client.stream('sim?chunks=2', { stream_options: undefined });

    expect(events).toHaveLength(5);
    expect(usage).toBeNull();
  });

  it('arrives whole at a reader that is slower than the provider', async () => {
    const { text, usage } = await client.stream('sim?words=200000&chunks=20000');

    expect(text.split(' ')).toHaveLength(200_000);
    expect(usage?.completion_tokens).toBe(200_000);
  });
});

describe('an answer beside text', () => {
  const TOOL = { type: 'function', function: { name: 'find', parameters: { type: 'object', properties: { q: {} } } } };
  const MARKED = { messages: [{ role: 'user', content: 'simulate-tool simulate-reasoning' }], tools: [TOOL] };

  it('has the same calls and reasoning complete and streamed', async () => {
    const { choices } = await client.complete('sim', MARKED);
    const { events, finishReason } = await client.stream('sim', MARKED);
    const deltas = events.slice(0, -1).map((event) => JSON.parse(event).choices[0]?.delta ?? {});
    const joined = deltas.flatMap(({ tool_calls: calls }) => calls ?? []).map(({ function: part }) => part.arguments);
    const reasoning = deltas.map(({ reasoning_content: text }) => text ?? '').join('');

    expect(finishReason).toBe('tool_calls');
    expect(choices[0]?.message).toEqual({
      ...{ role: 'assistant', content: null, refusal: null, reasoning_content: reasoning },
      tool_calls: [
        {
          id: expect.stringMatching(/^call_/),
          type: 'function',
          function: { name: 'find', arguments: joined.join('') },
        },
      ],
    });
    expect(joined.length).toBeGreaterThan(2);
  });

  it('has the probabilities of its tokens, complete and streamed', async () => {
    const asked = { logprobs: true, top_logprobs: 2 };
    const { choices } = await client.complete('sim?text=Hello+World', asked);
    const { events } = await client.stream('sim?text=Hello+World&chunks=2', asked);
    const streamed = events
      .slice(0, -1)
      .flatMap((event) => (JSON.parse(event) as { choices: typeof choices }).choices[0]?.logprobs?.content ?? []);

    expect(streamed).toEqual(choices[0]?.logprobs?.content);
    expect(streamed[0]).toEqual({
      ...{ token: 'Hello', logprob: -0.5, bytes: [72, 101, 108, 108, 111] },
      top_logprobs: [expect.objectContaining({ token: 'Hello' }), expect.objectContaining({ token: 'HELL' })],
    });
  });

  it('has as many choices as asked for, of different texts', async () => {
    const { choices, usage } = await client.complete('sim?words=5', { n: 2 });

    expect(new Set(choices.map(({ message }) => message.content)).size).toBe(2);
    expect(usage?.completion_tokens).toBe(10);
  });

  it('says its usage in the shape of the settings, or of a mark in the prompt', async () => {
    const shapes = ['chunk', 'beside', 'own', 'doubled', 'zero', 'absent', 'cached', 'text'];
    const told = await Promise.all(
      shapes.map(async (usage) => {
        const { events } = await client.stream(`sim?words=2&usage=${usage}`);
        const chunks = events.slice(0, -1).map((event) => JSON.parse(event));
        return chunks.flatMap(({ usage: top, choices, x_groq: own }) =>
          [top && { top, choices: choices.length }, own].filter(Boolean),
        );
      }),
    );
    const counts = { prompt_tokens: PROMPT_TOKENS, completion_tokens: 2, total_tokens: PROMPT_TOKENS + 2 };
    const [alone, beside] = [0, 1].map((choices) => ({ top: counts, choices }));

    expect(told).toEqual([
      ...[[alone], [beside], [{ usage: counts }], [beside, alone]],
      ...[[{ top: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, choices: 0 }], []],
      [{ top: { ...counts, prompt_tokens_details: { cached_tokens: 5 } }, choices: 0 }],
      [{ top: { prompt_tokens: '11', completion_tokens: '2', total_tokens: '13' }, choices: 0 }],
    ]);

    const messages = [{ role: 'user', content: 'simulate-usage=reasoning' }];
    const { usage } = await client.complete('sim?words=2&usage=zero', { messages });
    expect(usage).toMatchObject({ completion_tokens: 18, completion_tokens_details: { reasoning_tokens: 16 } });
    expect(provider.stats()).toMatchObject({
      ...{ calls: 9, completion_tokens: 34, prompt_tokens: 8 * PROMPT_TOKENS + 3 + 4 + 6 },
      ...{ prompt_tokens_details: { cached_tokens: 5 }, completion_tokens_details: { reasoning_tokens: 16 } },
    });
  });
});

describe('embeddings', () => {
  const embed = async (fields: object) => {
    const response = await client.post('/v1/embeddings', { model: 'sim', dimensions: 64, ...fields });
    return { status: response.status, ...JSON.parse(await response.text()) };
  };
  const nearness = (a: number[], b: number[]) => a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);

  it('are vectors of length 1, near each other for texts that share words', async () => {
    const input = ['the river runs to the sea', 'a river runs', 'green windows'];
    const { data, usage } = await embed({ input });
    const [sea = [], river = [], windows = []] = (data as { embedding: number[] }[]).map(({ embedding }) => embedding);

    expect(nearness(sea, sea)).toBeCloseTo(1);
    expect(nearness(sea, river)).toBeGreaterThan(nearness(sea, windows));
    expect(usage).toEqual({ prompt_tokens: 7 + 3 + 4, total_tokens: 14 });
    expect(provider.stats()).toMatchObject({ calls: 1, completed: 1, prompt_tokens: 14, completion_tokens: 0 });
  });

  it('come as base64, and of tokens', async () => {
    const { data } = await embed({ input: 'river' });
    const { data: encoded } = await embed({ input: 'river', encoding_format: 'base64' });
    const { data: ofTokens, usage } = await embed({ input: [[1, 2], [3]], dimensions: undefined });

    const bytes = Buffer.from(encoded[0].embedding, 'base64');
    expect(Array.from({ length: 64 }, (_, at) => bytes.readFloatLE(at * 4))).toEqual(data[0].embedding);
    expect([ofTokens.length, ofTokens[0].embedding.length, usage.prompt_tokens]).toEqual([2, 1_536, 3]);
  });

  it.each([{ input: '' }, { input: [] }, { input: 'a', encoding_format: 'hex' }, { input: 'a', dimensions: 0 }])(
    'are refused for %j',
    async (fields) => {
      expect((await embed(fields)).status).toBe(400);
    },
  );
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

  it('count a complete call that was left before its answer as aborted, without tokens', async () => {
    const leave = new AbortController();
    const response = client.chat('sim?first_token_ms=60000', {}, { signal: leave.signal });
    await until(() => provider.stats().in_flight === 1);
    leave.abort();
    await expect(response).rejects.toThrow();
    await until(() => provider.stats().in_flight === 0);

    expect(provider.stats()).toMatchObject({ aborted: 1, prompt_tokens: 0, completion_tokens: 0 });
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
