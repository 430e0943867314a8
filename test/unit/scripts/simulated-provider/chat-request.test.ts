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
    [{ ...valid, n: 2 }, 'n'],
    [{ ...valid, stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop'],
    [{ ...valid, stop: [1] }, 'stop'],
    [{ ...valid, seed: 'x' }, 'seed'],
    [{ ...valid, response_format: { type: 'xml' } }, 'response_format'],
  ])('refuses %j and names the field', (body, param) => {
    expect(() => parseChatRequest(body)).toThrow(expect.objectContaining({ status: 400, param }));
  });
});
