import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { itemOf, resultsOf } from '../support/batch-client.ts';
import { parseSse, postChat, postStream, textOf, waitFor, waitUntil } from '../support/chat.ts';
import { openStream } from '../support/stream-client.ts';
import { useApi, useService, useTenantPerTest } from '../support/use-service.ts';

function url(): string {
  const value = process.env['TEST_LLAMA_URL'];
  if (value === undefined)
    throw new Error('TEST_LLAMA_URL is not set; run these tests through npm run test:providers.');
  return value;
}

interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
}

async function serverSays<T>(path: string, body?: object): Promise<T> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(`${url()}${path}`, init);
  return (await response.json()) as T;
}

/** The server's own counts since its start: tokens of prompts, from its cache or not, and of answers. */
async function countedAtServer(): Promise<Usage> {
  const text = await (await fetch(`${url()}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^llamacpp:${name}_total (\\S+)$`, 'm').exec(text)?.[1]);
  return {
    prompt_tokens: read('prompt_tokens') + read('prompt_tokens_cached'),
    completion_tokens: read('tokens_predicted'),
  };
}

/** The tokens of messages as this model's template and vocabulary have them. */
async function tokensOf(messages: object[]): Promise<number> {
  const { prompt } = await serverSays<{ prompt: string }>('/apply-template', { messages });
  const { tokens } = await serverSays<{ tokens: number[] }>('/tokenize', { content: prompt, add_special: true });
  return tokens.length;
}

const slotsInUse = async () => {
  const slots = await serverSays<{ is_processing: boolean }[]>('/slots');
  return slots.filter((slot) => slot.is_processing).length;
};

describe("llama.cpp's server with a small model as provider", () => {
  const service = useService({ workers: 0 });
  const tenant = useTenantPerTest(service);
  const api = useApi(service, tenant);
  const window = { context_window: 2_048 };
  const target = { provider: 'llama', weight: 1, priority: 1, ...window };
  let model: string;
  let before: Usage;

  beforeAll(async () => {
    const { data } = await serverSays<{ data: { id: string; meta: { n_ctx: number } }[] }>('/v1/models');
    // The server's own word for what `npm start -- --local` and these tests set.
    expect(data[0]?.meta.n_ctx).toBe(window.context_window);
    model = data[0]?.id ?? '';
    const settings = { kind: 'openai', base_url: `${url()}/v1`, first_token_timeout_ms: 120_000, max_retries: 0 };
    await service.setProvider(settings, 'llama');
    await service.setTargets('mobius', [{ ...target, model }]);
    await service.setTargets('oloid', [{ ...target, model, context_window: 128_000 }]);
    await service.startWorker();
  });
  beforeEach(async () => {
    before = await countedAtServer();
  });
  afterEach(async () => {
    await waitUntil(async () => (await slotsInUse()) === 0, 'the slots to be free');
  });

  /** What the server has counted since the test began, once that is what the service has charged for. */
  async function expectSameAtServer(usage: Usage): Promise<void> {
    const counted = async () => {
      const now = await countedAtServer();
      return {
        prompt_tokens: now.prompt_tokens - before.prompt_tokens,
        completion_tokens: now.completion_tokens - before.completion_tokens,
      };
    };
    // It counts a request a moment after it has answered.
    const reached = async () => ((await counted()).completion_tokens >= usage.completion_tokens ? true : undefined);
    await waitFor(reached, "the server's count");
    expect(await counted()).toEqual({ prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens });
  }

  const ask = (content: string, more: object = {}) => ({
    messages: [{ role: 'user', content }],
    max_tokens: 24,
    ...more,
  });

  it('gives a complete answer, of which both have counted the same tokens', async () => {
    const body = ask('What is the capital of France?');

    const { status, body: answer } = await postChat(service.app, tenant.key, body);

    expect(status).toBe(200);
    expect(answer.choices[0].message.content).toMatch(/\w/);
    expect(answer.usage.prompt_tokens).toBe(await tokensOf(body.messages));
    await expectSameAtServer(answer.usage);
  });

  it('streams an answer as it is made, of which both have counted the same tokens', async () => {
    const { status, body } = await postStream(service.app, tenant.key, ask('Tell me about bridges.'));

    const events = parseSse(String(body));
    expect(status).toBe(200);
    expect(textOf(events)).toMatch(/\w/);
    expect(events.length).toBeGreaterThan(5);
    expect(events.at(-1)?.chunk).toBeUndefined();
    expect(events.at(-2)?.chunk).toMatchObject({ choices: [{ finish_reason: 'length' }] });
    await expectSameAtServer(events.at(-2)?.chunk?.['usage'] as Usage);
  });

  it('answers with a JSON object in json_mode', async () => {
    const body = ask('Give the name and the age of one dog.', { json_mode: true, max_tokens: 400 });

    const { status, body: answer } = await postChat(service.app, tenant.key, body);

    expect([status, answer.choices[0].finish_reason]).toEqual([200, 'stop']);
    expect(JSON.parse(String(answer.choices[0].message.content))).toEqual(expect.any(Object));
  });

  it('reads what an entity has said before, word for word', async () => {
    const first = ask('My name is Ada.', { entity_id: 'visitor-1' });
    const { body: answer } = await postChat(service.app, tenant.key, first);

    const second = ask('What is my name?', { entity_id: 'visitor-1' });
    const { body: next } = await postChat(service.app, tenant.key, second);

    const history = [...first.messages, answer.choices[0].message as object, ...second.messages];
    expect(next.usage.prompt_tokens).toBe(await tokensOf(history));
  });

  it('reads a long prompt', async () => {
    const body = ask(`${'The river runs to the sea and the sea is wide. '.repeat(120)}What does the river do?`);

    const { status, body: answer } = await postChat(service.app, tenant.key, body);

    expect(status).toBe(200);
    expect(answer.usage.prompt_tokens).toBeGreaterThan(1_200);
    await expectSameAtServer(answer.usage);
  });

  it('frees its slot when a stream is cancelled', async () => {
    const body = ask('Count from one to a thousand, in words.', { max_tokens: 1_500 });
    const stream = await openStream(service.url, tenant.key, body);
    await stream.until('"content"');
    expect(await slotsInUse()).toBe(1);

    await api('post', `/chat/${stream.requestId}/cancel`);

    await stream.end();
    expect(parseSse(stream.text()).at(-2)?.chunk).toMatchObject({ choices: [{ finish_reason: 'cancelled' }] });
    await waitUntil(async () => (await slotsInUse()) === 0, 'the slot to be free', 10_000);
  });

  // In tokens more than the window, in characters less than a message may have.
  const TOO_LONG = 'one two three four five '.repeat(500);

  it('is not asked what is too long for the window of its target', async () => {
    const { status, body } = await postChat(service.app, tenant.key, ask(TOO_LONG));

    expect([status, body.error.type]).toEqual([400, 'invalid_request_error']);
    expect(await countedAtServer()).toEqual(before);
  });

  it('has its refusal of what is too long passed on where the window is set wrong, without an outage', async () => {
    const { status, body } = await postChat(service.app, tenant.key, ask(TOO_LONG, { model: 'oloid' }));
    expect([status, body.error.type]).toEqual([400, 'invalid_request_error']);

    const after = await postChat(service.app, tenant.key, ask('Hello', { model: 'oloid' }));

    expect(after.status).toBe(200);
  });

  it('answers a batch of 20, of which both have counted the same tokens', async () => {
    const requests = Array.from({ length: 20 }, (_, index) => itemOf(`line-${index}`, { max_tokens: 8 }));
    const { body: batch } = await api('post', '/batches', { requests });
    const id = String(batch.id);

    const isCompleted = async () =>
      (await api('get', `/batches/${id}`)).body.status === 'completed' ? true : undefined;
    await waitFor(isCompleted, 'the batch to be completed', 120_000);

    const results = await resultsOf(service, tenant.key, id);
    const usages = results.map(({ response }) => (response as { usage: Usage } | undefined)?.usage);
    const sum = (count: keyof Usage) => usages.reduce((total, usage) => total + (usage?.[count] ?? 0), 0);
    expect(usages).toHaveLength(20);
    expect(sum('completion_tokens')).toBeGreaterThanOrEqual(20);
    await expectSameAtServer({ prompt_tokens: sum('prompt_tokens'), completion_tokens: sum('completion_tokens') });
  }, 180_000);
});
