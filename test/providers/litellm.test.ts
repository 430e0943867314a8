import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { createHttpClient } from '../../workers/providers/http-client.ts';
import type { HttpClient } from '../../workers/providers/http-client.ts';
import { createAdapters } from '../../workers/open-pipeline.ts';
import type { ProviderCall } from '../../workers/providers/provider.ts';
import { callOf, providerOf, readEvents } from '../support/provider-call.ts';

function setting(name: 'TEST_LITELLM_URL' | 'TEST_LITELLM_KEY'): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set; run these tests through npm run test:providers.`);
  return value;
}

const ANSWER = 'Rivers run to the sea.';

/** Both protocols of one server, with the two ways to ask. */
describe.each(['openai', 'anthropic'] as const)('LiteLLM through the adapter %s', (kind) => {
  let http: HttpClient;
  beforeAll(() => {
    http = createHttpClient();
  });
  afterAll(() => http.close());

  async function ask(model: string, more: Partial<ProviderCall> = {}, key = setting('TEST_LITELLM_KEY')) {
    const provider = providerOf(kind, `${setting('TEST_LITELLM_URL')}/v1`, key);
    const { events, failure } = await readEvents((sink) =>
      createAdapters(http)[kind].generate(provider, callOf({ model, maxTokens: 50, ...more }), sink),
    );
    const texts = events.flatMap((event) => (event.kind === 'text' ? event.text : []));
    return { texts, text: texts.join(''), end: events.at(-1), failure };
  }

  it.each(['mock', 'via-mock'])('reads a complete answer of %s, which it names', async (model) => {
    const { text, end, failure } = await ask(model, { stream: false });

    expect(failure).toBeUndefined();
    expect(text).toBe(ANSWER);
    expect(end).toEqual({
      kind: 'end',
      finishReason: 'stop',
      model,
      usage: { promptTokens: expect.any(Number), completionTokens: expect.any(Number) },
    });
  });

  it('reads a stream as it comes, with its usage', async () => {
    const { texts, text, end } = await ask('via-mock');

    expect(text).toBe(ANSWER);
    expect(texts.length).toBeGreaterThan(3);
    // "Hello" in a chat is 8 tokens for its tokenizer, the answer 7.
    expect(end).toMatchObject({ kind: 'end', finishReason: 'stop', usage: { promptTokens: 8, completionTokens: 7 } });
  });

  it('reads what it gives for a stream from its own mock, streamed or not', async () => {
    expect(await ask('mock')).toMatchObject({ text: ANSWER, end: { kind: 'end', finishReason: 'stop' } });
  });

  it('has its system messages, samplings and JSON instruction accepted', async () => {
    const { text, failure } = await ask('via-mock', {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'assistant', content: 'Welcome.' },
        { role: 'user', content: 'One.' },
        { role: 'user', content: 'Two.' },
      ],
      jsonMode: true,
      passed: { temperature: 1.5, top_p: 0.9, stop: ['END'], seed: 1, user: 'u1' },
    });

    expect(failure).toBeUndefined();
    expect(text).toBe(ANSWER);
  });

  it.each([
    ['a limit', 'limited', 429, 'transient'],
    ['a failure', 'broken', 500, 'transient'],
    ['a limit behind it', 'via-limited', 429, 'transient'],
    ['a model it does not have', 'no-such-model', 400, 'caller'],
  ])('takes %s for what it is', async (_what, model, status, fault) => {
    for (const stream of [true, false]) {
      expect((await ask(model, { stream })).failure).toMatchObject({ name: 'ProviderError', status, fault });
    }
  });

  it('is told that its key is wrong', async () => {
    const { failure } = await ask('mock', {}, 'sk-wrong');

    expect(failure).toMatchObject({ name: 'ProviderError', status: expect.any(Number) });
    expect(String((failure as Error).stack)).not.toContain('sk-wrong');
  });
});
