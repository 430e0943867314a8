import { describe, expect, it } from '@jest/globals';
import { parseChatRequest } from '../../../../scripts/simulated-provider/chat-request.ts';

const valid = { model: 'sim', messages: [{ role: 'user', content: 'Hi' }] };

describe('parseChatRequest', () => {
  it('reads what the provider honours', () => {
    const request = parseChatRequest({
      ...valid,
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 5,
      max_completion_tokens: 7,
      stop: ['END'],
      seed: -3,
      temperature: 0.5,
      response_format: { type: 'json_object' },
    });

    expect(request).toEqual({
      model: 'sim',
      messages: [{ role: 'user', text: 'Hi' }],
      received: valid.messages,
      stream: true,
      includeUsage: true,
      maxTokens: 7,
      stop: ['END'],
      seed: -3,
      temperature: 0.5,
      wantsJson: true,
      tools: [],
      toolChoice: 'auto',
      parallel: true,
      n: 1,
      topLogprobs: null,
    });
  });

  it('reads content in parts, and null where an assistant said nothing', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ];
    const messages = [
      { role: 'assistant', content: null },
      { role: 'user', content },
    ];

    expect(parseChatRequest({ ...valid, messages }).messages.map(({ text }) => text)).toEqual(['', 'ab']);
  });

  describe('with tools, parts and choices', () => {
    const tool = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };
    const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } };
    const result = { role: 'tool', tool_call_id: 'call_1', content: '7 °C' };
    const calling = { role: 'assistant', tool_calls: [call] };
    const from = (...messages: object[]) => ({ ...valid, messages: [...valid.messages, ...messages] });

    it('reads them', () => {
      const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
      const { messages, ...request } = parseChatRequest({
        ...from(calling, result, { role: 'user', content: [{ type: 'text', text: 'Look.' }, image] }),
        tools: [tool],
        tool_choice: { type: 'function', function: { name: 'weather' } },
        parallel_tool_calls: false,
        response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } },
        n: 2,
      });

      expect(messages.slice(1)).toEqual([
        { role: 'assistant', text: '', calls: [{ id: 'call_1', kind: 'function', name: 'weather', input: '{}' }] },
        { role: 'tool', text: '7 °C', callId: 'call_1' },
        { role: 'user', text: 'Look.', media: ['image'] },
      ]);
      expect(request).toMatchObject({ toolChoice: { name: 'weather' }, parallel: false, n: 2 });
      expect(request).toMatchObject({ wantsJson: true, schema: { type: 'object' } });
    });

    it.each<[object, string]>([
      [from(calling), 'messages'],
      [from(calling, { role: 'user', content: 'Well?' }, result), 'messages'],
      [from(result), 'messages[1].tool_call_id'],
      [from({ ...result, tool_call_id: undefined }), 'messages[1].tool_call_id'],
      [from({ ...calling, tool_calls: [{ ...call, id: undefined }] }, result), 'messages[1].tool_calls[0]'],
      [{ ...valid, tools: [{ type: 'function' }] }, 'tools[0].function.name'],
      [{ ...valid, tool_choice: 'required' }, 'tool_choice'],
      [{ ...valid, tools: [tool], tool_choice: { type: 'function', function: { name: 'time' } } }, 'tool_choice'],
      [{ ...valid, response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
    ])('refuses %j and names the field', (body, param) => {
      expect(() => parseChatRequest(body)).toThrow(expect.objectContaining({ status: 400, param }));
    });
  });

  it.each<[unknown, string | null]>([
    [null, null],
    [[], null],
    ['text', null],
    [{ ...valid, model: '' }, 'model'],
    [{ messages: valid.messages }, 'model'],
    [{ ...valid, messages: [] }, 'messages'],
    [{ ...valid, messages: {} }, 'messages'],
    [{ ...valid, messages: [null] }, 'messages[0]'],
    [{ ...valid, messages: [...valid.messages, { role: 'robot', content: 'Hi' }] }, 'messages[1].role'],
    [{ ...valid, messages: [{ role: 'user', content: null }] }, 'messages[0].content'],
    [{ ...valid, messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 'messages[0].content'],
    [{ ...valid, max_tokens: 0 }, 'max_tokens'],
    [{ ...valid, max_tokens: 1.5 }, 'max_tokens'],
    [{ ...valid, max_completion_tokens: '5' }, 'max_completion_tokens'],
    [{ ...valid, stream: 'yes' }, 'stream'],
    [{ ...valid, stream_options: { include_usage: true } }, 'stream_options'],
    [{ ...valid, stream: true, stream_options: 1 }, 'stream_options'],
    [{ ...valid, stream: true, stream_options: { include_usage: 1 } }, 'include_usage'],
    [{ ...valid, temperature: 3 }, 'temperature'],
    [{ ...valid, n: 9 }, 'n'],
    [{ ...valid, stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop'],
    [{ ...valid, stop: [1] }, 'stop'],
    [{ ...valid, seed: 'x' }, 'seed'],
    [{ ...valid, response_format: { type: 'xml' } }, 'response_format'],
  ])('refuses %j and names the field', (body, param) => {
    expect(() => parseChatRequest(body)).toThrow(expect.objectContaining({ status: 400, param }));
  });
});
