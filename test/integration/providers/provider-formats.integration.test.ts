import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import type { Usage } from '../../../shared/contracts/events.ts';
import { createHttpClient } from '../../../workers/providers/http-client.ts';
import type { HttpClient } from '../../../workers/providers/http-client.ts';
import { createAdapters } from '../../../workers/open-pipeline.ts';
import type { ProviderEvent } from '../../../workers/providers/provider.ts';
import { callOf, providerOf, readEvents } from '../../support/provider-call.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';

const sse = (...events: (object | string)[]) =>
  events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('');
const choice = (delta: object, finish: string | null = null, more: object = {}) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});
const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const text = (content: string): ProviderEvent => ({ kind: 'text', text: content });
const READ: Usage = { promptTokens: 3, completionTokens: 2 };
const end = (finishReason: 'stop' | 'length' = 'stop', usage: Usage | null = READ): ProviderEvent => ({
  kind: 'end',
  finishReason,
  usage: usage ?? undefined,
  // What `choice` names.
  model: 'm',
});

/** Streams as the servers' own documentation shows them, each with what sets it apart. */
const STREAMS: [string, string, ProviderEvent[]][] = [
  [
    'Azure OpenAI: a first chunk without choices for its content filter, usage null until the last',
    sse(
      { choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results: [{ prompt_index: 0 }] },
      choice({ role: 'assistant', content: '', refusal: null }, null, { usage: null }),
      choice({ content: 'Hi' }, null, { usage: null, system_fingerprint: 'fp' }),
      choice({}, 'stop', { usage: null }),
      { ...choice({}), choices: [], usage: USAGE },
      '[DONE]',
    ),
    [text('Hi'), end()],
  ],
  [
    'vLLM: extra fields, usage in every chunk that counts up, the last without choices',
    sse(
      choice({ role: 'assistant', content: '', reasoning_content: null }, null, {
        prompt_token_ids: null,
        usage: { prompt_tokens: 3, completion_tokens: 0, total_tokens: 3 },
      }),
      choice({ content: 'Hi', token_ids: null }, null, {
        usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
      }),
      choice({ content: '' }, 'stop', { usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }),
      { ...choice({}), choices: [], usage: USAGE },
      '[DONE]',
    ),
    [text('Hi'), end()],
  ],
  [
    'Ollama: every delta with its role, the finish with an empty content, CRLF line ends',
    sse(
      choice({ role: 'assistant', content: 'H' }),
      choice({ role: 'assistant', content: 'i' }),
      choice({ role: 'assistant', content: '' }, 'length'),
      { ...choice({}), choices: [], usage: USAGE },
      '[DONE]',
    ).replaceAll('\n', '\r\n'),
    [text('H'), text('i'), end('length')],
  ],
  [
    'Groq: usage in x_groq beside the finish',
    sse(
      choice({ role: 'assistant', content: '' }, null, { x_groq: { id: 'req_1' } }),
      choice({ content: 'Hi' }),
      choice({}, 'stop', { x_groq: { id: 'req_1', usage: { queue_time: 0.1, ...USAGE, total_time: 0.2 } } }),
      '[DONE]',
    ),
    [text('Hi'), end()],
  ],
  [
    'LiteLLM: usage in a last chunk that has a choice',
    sse(choice({ role: 'assistant', content: 'Hi' }), choice({}, 'stop'), choice({}, null, { usage: USAGE }), '[DONE]'),
    [text('Hi'), end()],
  ],
  [
    'Mistral: usage on the finish itself, a reason of its own',
    sse(choice({ content: 'Hi' }), choice({ content: '' }, 'model_length', { usage: USAGE }), '[DONE]'),
    [text('Hi'), end('length')],
  ],
  [
    'OpenRouter: comments while it waits, a native reason beside the finish',
    `: OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n${sse(
      choice({ role: 'assistant', content: 'Hi' }),
      { ...choice({}), choices: [{ index: 0, delta: {}, finish_reason: 'stop', native_finish_reason: 'STOP' }] },
      choice({ role: 'assistant', content: '' }, null, { usage: USAGE }),
      '[DONE]',
    )}`,
    [text('Hi'), end()],
  ],
  [
    'Text Generation Inference: finish eos_token, usage null, no [DONE]',
    sse(choice({ role: 'assistant', content: 'Hi' }), choice({ content: '' }, 'eos_token', { usage: null })),
    [text('Hi'), end('stop', null)],
  ],
  [
    'a delta without content, and one that is null',
    sse(choice({}), choice({ content: null }), choice({ content: 'Hi' }), choice({}, 'stop', { usage: USAGE })),
    [text('Hi'), end()],
  ],
  [
    'a tool call beside text, which is an answer',
    sse(choice({ content: 'Hi' }), choice({ tool_calls: [] }, 'tool_calls', { usage: USAGE }), '[DONE]'),
    [text('Hi'), end()],
  ],
  [
    'more choices than were asked for, of which the first counts',
    sse(
      {
        choices: [{ index: 1, delta: { content: 'No' }, finish_reason: 'length' }, ...choice({ content: 'H' }).choices],
      },
      { choices: [{ index: 1, delta: { content: 'No' }, finish_reason: 'length' }] },
      choice({ content: 'i' }, 'stop', { usage: USAGE }),
    ),
    [text('H'), text('i'), end()],
  ],
  [
    'messages in place of deltas',
    sse(
      { choices: [{ message: { content: 'H' } }] },
      { choices: [{ message: { content: 'i' }, finish_reason: 'stop' }], model: 'm', usage: USAGE },
    ),
    [text('H'), text('i'), end()],
  ],
  [
    'MiniMax: the whole message behind its deltas',
    sse(choice({ content: 'Hi' }), {
      ...choice({}),
      choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }],
      usage: USAGE,
    }),
    [text('Hi'), end()],
  ],
  [
    'a count, and zeros behind it',
    sse(
      choice({ content: 'Hi' }, 'stop', { usage: USAGE }),
      choice({}, null, { usage: { prompt_tokens: 0, completion_tokens: 0 } }),
    ),
    [text('Hi'), end()],
  ],
  [
    'a count of zero, which is a number',
    sse(choice({ content: 'Hi' }), choice({}, 'stop', { usage: { prompt_tokens: 0, completion_tokens: 0 } })),
    [text('Hi'), end('stop', { promptTokens: 0, completionTokens: 0 })],
  ],
];

describe('an OpenAI-compatible server', () => {
  let http: HttpClient;
  let server: ScriptedServer;
  beforeEach(async () => {
    server = await startScriptedServer();
    http = createHttpClient();
  });
  afterEach(async () => {
    await http.close();
    await server.close();
  });

  const answers = (body: string, type = 'text/event-stream', status = 200) => {
    server.answer((res) => res.writeHead(status, { 'content-type': type }).end(body));
  };
  const ask = (stream: boolean, path = '/v1') =>
    readEvents((sink) =>
      createAdapters(http).openai.generate(providerOf('openai', server.url + path), callOf({ stream }), sink),
    );

  it.each(STREAMS)('an OpenAI-compatible server streams as %s', async (_server, body, expected) => {
    answers(body);

    expect(await ask(true)).toEqual({ events: expected });
  });

  it('answers a call for a stream with a whole document, as a cache does', async () => {
    const message = { role: 'assistant', content: 'Hi' };
    answers(
      JSON.stringify({ choices: [{ message, finish_reason: 'stop' }], usage: USAGE }),
      'application/json; charset=utf-8',
    );

    expect(await ask(true)).toEqual({ events: [text('Hi'), { ...end(), model: undefined }] });
  });

  it.each([
    ['data', sse(choice({ content: 'Hi' }), choice({}, 'stop', { usage: USAGE }), '[DONE]')],
    ['a comment', `\n: wait\n\n${sse(choice({ content: 'Hi' }), choice({}, 'stop', { usage: USAGE }), '[DONE]')}`],
    ['an event', `event: chunk\n${sse(choice({ content: 'Hi' }), choice({}, 'stop', { usage: USAGE }), '[DONE]')}`],
  ])('streams although its headers say JSON: it begins with %s', async (_what, body) => {
    server.answer((res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      // White space alone tells nothing.
      res.write('\n');
      setImmediate(() => res.end(body));
    });

    expect(await ask(true)).toEqual({ events: [text('Hi'), end()] });
  });

  it('is reached at Azure’s address: the version stays behind the path, the key has a header of its own', async () => {
    answers(sse(choice({ content: 'Hi' }, 'stop'), '[DONE]'));

    await ask(true, '/openai/deployments/d/?api-version=2024-10-21');

    expect(server.requests[0]?.url).toBe('/openai/deployments/d/chat/completions?api-version=2024-10-21');
    expect(server.requests[0]?.headers).toMatchObject({ 'api-key': 'sk-secret' });
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it.each([
    ['Groq', sse(choice({ content: 'H' }), choice({}, null, { x_groq: { error: 'over_capacity' } })), 'transient'],
    ['OpenRouter', sse(choice({ content: 'H' }), choice({}, 'error', { error: { code: 502 } })), 'transient'],
    ['vLLM', sse({ object: 'error', message: 'too long', type: 'BadRequestError', code: 400 }), 'caller'],
    ['DeepSeek', sse(choice({ content: 'H' }, 'insufficient_system_resource'), '[DONE]'), 'transient'],
    ['a model that wants a tool', sse(choice({ tool_calls: [{}] }, 'tool_calls'), '[DONE]'), 'transient'],
  ])('an OpenAI-compatible server fails inside its stream: %s', async (_server, body, fault) => {
    answers(body);

    expect((await ask(true)).failure).toMatchObject({ fault });
  });

  it('that has no credit left is passed over, though it says 429', async () => {
    answers('{"error":{"code":"insufficient_quota","message":"canary"}}', 'application/json', 429);

    expect((await ask(false)).failure).toMatchObject({ fault: 'refused', status: 429 });
  });
});
