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

  it('is cut at max_tokens with finish reason length', async () => {
    const whole = await client.stream('sim?tokens=30');
    const cut = await client.stream('sim?tokens=30', { max_tokens: 10 });

    expect(cut).toMatchObject({ finishReason: 'length', usage: { completion_tokens: 10 } });
    expect(whole.text.startsWith(cut.text)).toBe(true);
  });

  it('is JSON where asked for, and only from the second call on with invalid_once', async () => {
    const asked = { response_format: { type: 'json_object' } };
    const first = await client.complete('sim?json=invalid_once', asked);
    const second = await client.complete('sim?json=invalid_once', asked);

    expect(() => JSON.parse(first.choices[0]?.message.content ?? '') as unknown).toThrow(SyntaxError);
    expect(typeof JSON.parse(second.choices[0]?.message.content ?? '')).toBe('object');
  });

  it('arrives whole at a reader that is slower than the provider', async () => {
    const { text, usage } = await client.stream('sim?words=200000&chunks=20000');

    expect(text.split(' ')).toHaveLength(200_000);
    expect(usage?.completion_tokens).toBe(200_000);
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
