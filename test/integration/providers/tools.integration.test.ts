import { describe, expect, it } from '@jest/globals';

import { createAdapters } from '../../../workers/open-pipeline.ts';
import { mergeAnswer } from '../../../shared/contracts/events.ts';
import type { ProviderCall } from '../../../workers/providers/provider.ts';
import { callOf, providerOf, readEvents } from '../../support/provider-call.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';

const data = (...events: (object | string)[]) =>
  events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('');
const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason: finish, ...more }],
});
const call = (index: number, more: object) => ({ tool_calls: [{ index, ...more }] });
const OPENAI_STREAM = data(
  chunk({ role: 'assistant', content: null, reasoning_content: 'Two cities.' }),
  chunk({ content: 'Let me look.' }),
  chunk(call(0, { id: 'a', type: 'function', function: { name: 'weather', arguments: '' } })),
  chunk(call(0, { function: { arguments: '{"city":"Ber' } })),
  chunk(call(0, { function: { arguments: 'lin"}' } })),
  chunk(call(1, { id: 'b', type: 'function', function: { name: 'time', arguments: '{}' } })),
  chunk({}, 'tool_calls'),
  { choices: [], usage: { prompt_tokens: 30, completion_tokens: 12 } },
  '[DONE]',
);
const CALLS = [
  { id: 'a', type: 'function', function: { name: 'weather', arguments: '{"city":"Berlin"}' } },
  { id: 'b', type: 'function', function: { name: 'time', arguments: '{}' } },
];
const OPENAI_DOCUMENT = JSON.stringify({
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Let me look.', reasoning_content: 'Two cities.', tool_calls: CALLS },
      finish_reason: 'tool_calls',
    },
  ],
  usage: { prompt_tokens: 30, completion_tokens: 12 },
});
const block = (index: number, begun: object, ...deltas: object[]) => [
  { type: 'content_block_start', index, content_block: begun },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
];
const ANTHROPIC_STREAM = data(
  { type: 'message_start', message: { usage: { input_tokens: 30, output_tokens: 1 } } },
  ...block(0, { type: 'thinking', thinking: '' }, { type: 'thinking_delta', thinking: 'Two cities.' }),
  ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Let me look.' }),
  ...block(
    2,
    { type: 'tool_use', id: 'a', name: 'weather', input: {} },
    { type: 'input_json_delta', partial_json: '' },
    { type: 'input_json_delta', partial_json: '{"city":"Ber' },
    { type: 'input_json_delta', partial_json: 'lin"}' },
  ),
  ...block(3, { type: 'tool_use', id: 'b', name: 'time', input: {} }),
  { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 12 } },
  { type: 'message_stop' },
);
const ANTHROPIC_TWICE = ANTHROPIC_STREAM.replace(
  '"name":"weather","input":{}',
  '"name":"weather","input":{"city":"B"}',
).replaceAll(/data: \{"type":"content_block_stop".*\n\n/g, '');
const ANTHROPIC_DOCUMENT = JSON.stringify({
  type: 'message',
  content: [
    { type: 'thinking', thinking: 'Two cities.' },
    { type: 'text', text: 'Let me look.' },
    { type: 'tool_use', id: 'a', name: 'weather', input: { city: 'Berlin' } },
    { type: 'tool_use', id: 'b', name: 'time', input: {} },
  ],
  stop_reason: 'tool_use',
  usage: { input_tokens: 30, output_tokens: 12 },
});

const PASSED = { tools: [{ type: 'function', function: { name: 'weather' } }] };

describe('a provider that calls tools', () => {
  const { server, http } = useScriptedServer();

  function ask(kind: 'openai' | 'anthropic', body: string, more: Partial<ProviderCall> = {}) {
    server.answer((res) => res.end(body));
    return readEvents((sink) =>
      createAdapters(http)[kind].generate(providerOf(kind, `${server.url}/v1`), callOf(more), sink),
    );
  }
  const linesOf = ({ events }: Awaited<ReturnType<typeof ask>>) =>
    events.flatMap((event) =>
      event.kind === 'end' ? [] : [event.kind === 'text' ? JSON.stringify(event.text) : event.line],
    );

  it.each([
    ['openai', 'a stream', OPENAI_STREAM],
    ['openai', 'a document', OPENAI_DOCUMENT],
    ['anthropic', 'a stream', ANTHROPIC_STREAM],
    ['anthropic', 'a stream that tells an input twice and ends no block', ANTHROPIC_TWICE],
    ['anthropic', 'a document', ANTHROPIC_DOCUMENT],
  ] as const)('speaks %s in %s: its calls, reasoning and text are told as OpenAI has them', async (kind, _as, body) => {
    const read = await ask(kind, body, { passed: PASSED });

    expect(mergeAnswer(linesOf(read)).message).toEqual({
      content: 'Let me look.',
      reasoning_content: 'Two cities.',
      tool_calls: CALLS,
    });
    expect(read.events.at(-1)).toMatchObject({
      kind: 'end',
      finishReason: 'tool_calls',
      usage: { promptTokens: 30, completionTokens: 12 },
    });
  });

  it('hands on the deltas of a stream as they were cut', async () => {
    expect(linesOf(await ask('openai', OPENAI_STREAM, { passed: PASSED }))).toEqual([
      '[{"reasoning_content":"Two cities."}]',
      '"Let me look."',
      '[{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"weather","arguments":""}}]}]',
      '[{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\":\\"Ber"}}]}]',
      '[{"tool_calls":[{"index":0,"function":{"arguments":"lin\\"}"}}]}]',
      '[{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"time","arguments":"{}"}}]}]',
    ]);
  });

  it('leaves out what later pieces of a call say as null or empty, which OpenAI’s client takes for another call', async () => {
    const piece = { id: null, type: '', function: { name: null, arguments: '{' } };
    const [begun, later] = linesOf(
      await ask(
        'openai',
        data(chunk(call(0, CALLS[0] ?? {})), chunk(call(0, piece)), chunk({}, 'tool_calls'), '[DONE]'),
        { passed: PASSED },
      ),
    );
    expect(begun).toContain('"id":"a"');
    expect(later).toBe('[{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}]');
  });

  it('leaves out what later pieces of a call repeat, which OpenAI’s client joins; a name may come in pieces', async () => {
    const piece = (name: string, args: string) =>
      chunk(call(0, { id: 'a', type: 'function', function: { name, arguments: args } }));
    const stream = data(piece('wea', ''), piece('ther', '{'), piece('weather', '}'), chunk({}, 'tool_calls'), '[DONE]');

    expect(linesOf(await ask('openai', stream, { passed: PASSED })).slice(1)).toEqual([
      '[{"tool_calls":[{"index":0,"function":{"name":"ther","arguments":"{"}}]}]',
      '[{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}]',
    ]);
  });

  it.each([
    ['openai', OPENAI_STREAM],
    ['openai', OPENAI_DOCUMENT],
    ['anthropic', ANTHROPIC_STREAM],
    ['anthropic', ANTHROPIC_DOCUMENT],
  ] as const)('may call that an ordinary end, which it is not: %s %#', async (kind, body) => {
    const ended = body.replace(/_reason":"\w+"/, `_reason":"stop"`);

    expect((await ask(kind, ended, { passed: PASSED })).events.at(-1)).toMatchObject({ finishReason: 'tool_calls' });
  });

  const called = (...calls: unknown[]) => chunk({ tool_calls: calls });
  const [first = {}, second = {}] = CALLS;
  const cut = (call: object, from: number, to?: number) => ({
    arguments: '{"city":"Berlin"}'.slice(from, to),
    ...call,
  });
  const bare = (args?: unknown) => ({ function: { name: 'weather', arguments: args } });
  const madeUp = (call: object) => ({ id: expect.stringMatching(/^call_\w{24}$/), type: 'function', ...call });

  it.each<[string, object[], object[]]>([
    ['an index that all share', [called({ index: 0, ...first }), called({ index: 0, ...second })], CALLS],
    ['no indexes', [called(first), called(second)], CALLS],
    ['indexes from 1', [called({ index: 1, ...first }), called({ index: 2, ...second })], CALLS],
    [
      'an id with each piece of a call',
      [
        called({ index: 0, ...first, function: cut({ name: 'weather' }, 0, 4) }),
        called({ index: 0, id: 'another', type: 'function', function: cut({}, 4) }, { index: 1, ...second }),
      ],
      CALLS,
    ],
    ['neither ids nor types', [called(bare('{}'))], [madeUp(bare('{}'))]],
    ['null for an id and no arguments', [called({ id: null, ...bare() })], [madeUp(bare(''))]],
    [
      'empty ids and no indexes',
      [
        called({ ...first, id: '' }),
        called({ ...first, id: '', function: { name: 'weather', arguments: '' } }),
        called({ ...second, id: '' }),
      ],
      CALLS.map((each) => madeUp({ function: each.function })),
    ],
    ['arguments that are an object', [called(bare({ city: 'B' }))], [madeUp(bare('{"city":"B"}'))]],
    ['what is no call', [called(null, 'x', first), chunk({ tool_calls: 'x', reasoning_content: 5 })], [first]],
  ])('gives calls the form that clients read, told with %s', async (_with, chunks, calls) => {
    const stream = data(...chunks, chunk({}, 'tool_calls'), '[DONE]');
    const message = mergeAnswer(linesOf(await ask('openai', stream, { passed: PASSED }))).message;

    expect(message).toEqual({ content: null, tool_calls: calls });
  });

  it.each([
    ['openai', OPENAI_STREAM],
    ['openai', OPENAI_DOCUMENT],
  ] as const)('gives callers of plain text only that: %s', async (kind, body) => {
    expect((await ask(kind, body)).events).toMatchObject([
      { kind: 'text', text: 'Let me look.' },
      { kind: 'end', finishReason: 'stop' },
    ]);
  });

  it.each([
    ['openai', data(chunk(call(0, { id: 'a', function: { name: 'f', arguments: '' } })), chunk({}, 'tool_calls'))],
    ['anthropic', ANTHROPIC_STREAM],
    ['anthropic', ANTHROPIC_DOCUMENT],
  ] as const)('fails where no tool was offered: %s', async (kind, body) => {
    expect((await ask(kind, body, { passed: {} })).failure).toMatchObject({ fault: 'transient' });
  });

  it('may refuse, which OpenAI’s clients get as a refusal', async () => {
    const read = await ask('openai', data(chunk({ refusal: 'No.' }), chunk({}, 'stop')), { passed: {} });

    expect(linesOf(read)).toEqual(['[{"refusal":"No."}]']);
    expect(read.events.at(-1)).toMatchObject({ finishReason: 'stop' });
  });

  it('keeps the probabilities of tokens beside their text', async () => {
    const logprobs = (token: string) => ({ logprobs: { content: [{ token, logprob: -0.1 }], refusal: null } });
    const body = data(chunk({ content: 'A' }, null, logprobs('A')), chunk({ content: 'B' }, 'stop', logprobs('B')));
    const read = await ask('openai', body, { passed: { logprobs: true } });

    expect(mergeAnswer(linesOf(read))).toEqual({
      message: { content: 'AB' },
      choice: {
        logprobs: {
          content: [
            { token: 'A', logprob: -0.1 },
            { token: 'B', logprob: -0.1 },
          ],
          refusal: null,
        },
      },
    });
  });
});
