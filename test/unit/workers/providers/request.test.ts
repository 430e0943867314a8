import { describe, expect, it } from '@jest/globals';

import type { ChatMessage, Role } from '../../../../shared/contracts/chat-request.ts';
import type { Fields } from '../../../../shared/contracts/events.ts';
import { toMessagesBody } from '../../../../workers/providers/anthropic-request.ts';
import { anthropicHeaders } from '../../../../workers/providers/anthropic.ts';
import type { ProviderCall } from '../../../../workers/providers/provider.ts';

const say = (role: Role, content: string): ChatMessage => ({ role, content });

function bodyOf(more: Partial<ProviderCall> = {}): Record<string, unknown> {
  const call: ProviderCall = {
    requestId: 'req_1',
    messages: [say('user', 'Hi')],
    model: 'claude-x',
    maxTokens: 100,
    jsonMode: false,
    stream: false,
    signal: new AbortController().signal,
    ...more,
  };
  return JSON.parse(toMessagesBody(call)) as Record<string, unknown>;
}

const turnsOf = (...messages: ChatMessage[]) => bodyOf({ messages })['messages'];

describe('the body for the Messages API', () => {
  it('is model, max_tokens and messages, and nothing that was not asked for', () => {
    expect(bodyOf()).toEqual({ model: 'claude-x', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] });
  });

  it('the body for the Messages API asks for a stream', () => {
    expect(bodyOf({ stream: true })).toMatchObject({ stream: true });
  });

  it('has the system messages in a field of their own, in order, wherever they stood', () => {
    const messages = [say('system', 'One.'), say('user', 'Hi'), say('system', 'Two.')];

    expect(bodyOf({ messages })).toMatchObject({ system: 'One.\n\nTwo.', messages: [{ role: 'user', content: 'Hi' }] });
  });

  it('has no half of a surrogate pair', () => {
    const messages = [say('system', 'Be\udc00'), say('user', 'Hi \ud83d')];

    expect(bodyOf({ messages, passed: { stop: 'x\ud800' } })).toMatchObject({
      system: 'Be\ufffd',
      messages: [{ role: 'user', content: 'Hi \ufffd' }],
      stop_sequences: ['x\ufffd'],
    });
  });

  it('sends of a message role and content only', () => {
    const stored = { role: 'user', content: 'x', requestId: 'req_secret' } as const;

    expect(JSON.stringify(bodyOf({ messages: [stored] }))).not.toContain('req_secret');
  });

  it('asks for JSON in words, after the caller’s own instructions', () => {
    const { system } = bodyOf({ jsonMode: true, messages: [say('system', 'Be brief.'), say('user', 'Hi')] });

    expect(system).toMatch(/^Be brief\.\n\nAnswer with one JSON object/);
  });
});

describe('the turns', () => {
  it('the turns join messages of one role in a row', () => {
    expect(turnsOf(say('user', 'A'), say('user', 'B'), say('assistant', 'C'), say('user', 'D'))).toEqual([
      say('user', 'A\n\nB'),
      say('assistant', 'C'),
      say('user', 'D'),
    ]);
  });

  it('join user messages between which only a system message stood', () => {
    expect(turnsOf(say('user', 'A'), say('system', 'S'), say('user', 'B'))).toEqual([say('user', 'A\n\nB')]);
  });

  it('begin with the user, even where the conversation does not', () => {
    expect(turnsOf(say('assistant', 'Welcome!'), say('user', 'Hi'))).toEqual([
      say('user', '(The conversation begins.)'),
      say('assistant', 'Welcome!'),
      say('user', 'Hi'),
    ]);
  });

  it('are never empty, for a conversation of instructions only', () => {
    expect(bodyOf({ messages: [say('system', 'Greet the user.')] })).toMatchObject({
      system: 'Greet the user.',
      messages: [say('user', '(The conversation begins.)')],
    });
  });

  it('end with the user, as current models refuse to continue a message of their own', () => {
    expect(turnsOf(say('user', 'Hi'), say('assistant', 'Hello'))).toEqual([
      say('user', 'Hi'),
      say('assistant', 'Hello'),
      say('user', 'Continue.'),
    ]);
  });

  it('leave out messages without a word, which the API refuses', () => {
    expect(turnsOf(say('user', 'A'), say('assistant', ' \n'), say('user', 'B'))).toEqual([say('user', 'A\n\nB')]);
    expect(bodyOf({ messages: [say('system', ' '), say('user', 'A')] })).not.toHaveProperty('system');
  });
});

describe('the sampling settings', () => {
  it.each([
    [{ temperature: 0 }, { temperature: 0 }],
    [{ temperature: 1.7 }, { temperature: 1 }],
    [{ top_p: 0.5 }, { top_p: 0.5 }],
    [{ temperature: 0.2, top_p: 0.5 }, { temperature: 0.2 }],
    [{ stop: 'END' }, { stop_sequences: ['END'] }],
    [{ stop: ['a', 'b'] }, { stop_sequences: ['a', 'b'] }],
    [{ stop: [] }, {}],
    [{ stop: ['\n', 'END'] }, { stop_sequences: ['END'] }],
    [{ stop: '\n\n' }, {}],
    [{ seed: 7 }, {}],
    [{ user: 'u1' }, { metadata: { user_id: 'u1' } }],
  ])('the sampling settings %j become %j', (passed, expected) => {
    expect(bodyOf({ passed })).toEqual({ ...bodyOf(), ...expected });
  });
});

describe('the headers', () => {
  const provider = {
    name: 'p',
    kind: 'anthropic' as const,
    baseUrl: 'https://host/v1',
    timeoutMs: 1,
    firstTokenTimeoutMs: 1,
    maxRetries: 0,
  };

  it('name the version, and the key where there is one', () => {
    expect(anthropicHeaders(provider)).toEqual({ 'anthropic-version': '2023-06-01' });
    expect(anthropicHeaders({ ...provider, apiKey: 'k' })).toEqual({
      'anthropic-version': '2023-06-01',
      'x-api-key': 'k',
    });
  });
});

describe('tools, images and files for the Messages API', () => {
  const weather = { name: 'weather', description: 'The weather', parameters: { type: 'object' } };
  const tools = [
    { type: 'function', function: weather },
    { type: 'function', function: { name: 'time', description: null, parameters: {} } },
  ];
  const TOOLS = [
    { name: 'weather', description: 'The weather', input_schema: { type: 'object', properties: {} } },
    { name: 'time', input_schema: { type: 'object', properties: {} } },
  ];

  it.each<[object, object]>([
    [{}, {}],
    [{ tool_choice: 'auto' }, {}],
    [{ tool_choice: 'none' }, { tool_choice: { type: 'none' } }],
    [{ tool_choice: 'required' }, { tool_choice: { type: 'any' } }],
    [
      { tool_choice: { type: 'function', function: { name: 'time' } } },
      { tool_choice: { type: 'tool', name: 'time' } },
    ],
    [{ parallel_tool_calls: false }, { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }],
    [
      { tool_choice: 'required', parallel_tool_calls: false },
      { tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    ],
  ])('have the choice of tools in its words: %j', (given, expected) => {
    expect(bodyOf({ passed: { tools, ...given } })).toEqual({ ...bodyOf(), tools: TOOLS, ...expected });
  });

  it('leave out the tools that the caller does not allow', () => {
    const named = { type: 'function', function: { name: 'time' } };
    const choice = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [named] } };

    expect(bodyOf({ passed: { tools, tool_choice: choice } })).toMatchObject({
      tools: [TOOLS[1]],
      tool_choice: { type: 'any' },
    });
  });

  const called = (id: string, name: string, json: string) => ({
    id,
    type: 'function',
    function: { name, arguments: json },
  });
  const asking: ChatMessage = {
    role: 'assistant',
    content: 'Let me look.',
    sent: {
      role: 'assistant',
      content: 'Let me look.',
      tool_calls: [called('a', 'weather', '{"city":"Berlin"}'), called('b', 'time', '')],
    },
  };
  const result = (id: string, content: string): ChatMessage => ({
    role: 'tool',
    content,
    sent: { role: 'tool', tool_call_id: id, content },
  });

  it('have calls and results as blocks, all results of a turn in one message', () => {
    const messages = [say('user', 'Hi'), asking, result('a', '22 degrees'), result('b', ''), say('user', 'And now?')];

    expect(turnsOf(...messages)).toEqual([
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me look.' },
          { type: 'tool_use', id: 'a', name: 'weather', input: { city: 'Berlin' } },
          { type: 'tool_use', id: 'b', name: 'time', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: '22 degrees' }] },
          { type: 'tool_result', tool_use_id: 'b' },
          { type: 'text', text: 'And now?' },
        ],
      },
    ]);
  });

  it.each(['functions.get_weather:0', 'a'.repeat(65), ''])('give the call %j an id that the API takes', (id) => {
    const call: ChatMessage = {
      role: 'assistant',
      content: '',
      sent: { role: 'assistant', tool_calls: [called(id, 'weather', ''), called('functions.time:1', 'time', '')] },
    };

    const [, calls, results] = turnsOf(say('user', 'Hi'), call, result(id, '22')) as { content: Fields[] }[];

    expect(calls?.content[0]?.['id']).toMatch(/^[\w-]{1,64}$/);
    expect(calls?.content[0]?.['id']).toBe(results?.content[0]?.['tool_use_id']);
    expect(calls?.content[0]?.['id']).not.toBe(calls?.content[1]?.['id']);
  });

  it('name the tools of earlier calls where the request offers none', () => {
    const messages = [say('user', 'Hi'), asking, result('a', '22'), result('b', '12:00')];

    expect(bodyOf({ messages })).toMatchObject({
      tools: [{ name: 'weather' }, { name: 'time' }],
      tool_choice: { type: 'none' },
    });
  });

  it('have images and files by URL or in base64', () => {
    const content = [
      { type: 'text', text: 'Look' },
      { type: 'image_url', image_url: { url: 'https://example.org/a.png', detail: 'low' } },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
      { type: 'image_url', image_url: { url: 'data:image/JPG;base64,/9j/' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE' } },
      { type: 'file', file: { file_data: 'data:text/csv;charset=utf-8;base64,w6k7Mg==' } },
    ];
    const message: ChatMessage = { role: 'user', content: 'Look', sent: { role: 'user', content } };

    expect(turnsOf(message)).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } },
          { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: '/9j/' } },
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' }, title: 'a.pdf' },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'é;2' } },
        ],
      },
    ]);
  });
});
