import { describe, expect, it } from '@jest/globals';

import { toLine } from '../../../../../api/resources/batches/to-line.ts';
import { CHAT_LIMITS } from '../../../../../shared/contracts/chat-request.ts';

const LINE = { name: 'Line 7' };
const MESSAGES = [{ role: 'user', content: 'Hi' }];

function read(item: unknown) {
  return toLine({ place: LINE, json: Buffer.from(JSON.stringify(item)) }, false);
}

/** What is wrong with a line, and whether its name could be read. */
function faultOf(line: ReturnType<typeof read>) {
  if (!('error' in line)) throw new Error('The line was accepted');
  const { code, param, message } = line.error;
  return { customId: line.customId, code, param, message };
}

describe('a request of a batch', () => {
  it('a request of a batch is kept as what a worker runs', () => {
    const line = read({
      custom_id: 'a',
      body: { messages: MESSAGES, entity_id: 'pupil', stream: false },
      method: 'POST',
    });

    expect(line).toEqual({ customId: 'a', entityId: 'pupil', requestJson: expect.any(String) });
    expect('requestJson' in line && JSON.parse(line.requestJson)).toEqual({
      messages: MESSAGES,
      maxTokens: 4_096,
      fitsTokens: true,
      jsonMode: false,
      entityId: 'pupil',
    });
  });

  it.each(['/v1/chat/completions', '/chat/completions'])('is read as OpenAI’s body where its url is %s', (url) => {
    const body = {
      messages: [{ role: 'developer', content: [{ type: 'text', text: 'Hi' }] }],
      max_completion_tokens: 5,
      response_format: { type: 'json_object' },
      stop: null,
    };
    const line = read({ custom_id: 'a', method: 'POST', url, body });

    expect('requestJson' in line && JSON.parse(line.requestJson)).toEqual({
      messages: [{ role: 'system', content: 'Hi' }],
      maxTokens: 5,
      fitsTokens: true,
      jsonMode: true,
      passed: {},
    });
  });

  it.each([
    [
      { url: '/v1/chat/completions', body: { messages: MESSAGES, tools: [{ type: 'function' }] } },
      'body.tools[0].function',
      '`body.tools[0].function` is required',
    ],
    [{ url: '/v1/chat/completions', body: { messages: MESSAGES, store: true } }, 'body.store', 'is not read here'],
    [{ url: '/v1/chat/completions', body: { messages: MESSAGES, n: 2 } }, 'body.n', '`body.n` must be 1'],
    [{ url: '/v1/chat/completions', body: { messages: MESSAGES, stream: true } }, 'body.stream', 'is complete'],
    [{ body: { messages: MESSAGES, tools: [{}] } }, 'body.tools', '`POST /chat/completions` only'],
    [{ body: { messages: MESSAGES, max_completion_tokens: 5 } }, 'body.max_completion_tokens', '`max_tokens`'],
    [{ url: '/v1/responses', body: {} }, 'url', 'must be `/v1/chat/completions`, `/v1/embeddings` or `/chat`'],
    [{ method: 'GET', body: {} }, 'method', 'must be POST'],
  ])('is refused by name what it would lose: %j', (item, param, say) => {
    expect(faultOf(read({ custom_id: 'a', ...item }))).toMatchObject({
      customId: 'a',
      code: 'invalid_request',
      param,
      message: expect.stringContaining(say),
    });
  });

  it.each([
    ['pupil', { entityId: 'pupil' }],
    [7, {}],
    ['x'.repeat(257), {}],
  ])('that is refused still says of whom it was, for a deletion of the entity: %j', (entityId, named) => {
    const line = read({ custom_id: 'of pupil', body: { messages: [], entity_id: entityId } });
    expect(line).toEqual({ customId: 'of pupil', error: expect.any(Object), ...named });
  });

  it.each([
    ['256 code points', '🦉'.repeat(256)],
    ['one character', '0'],
    ['a NUL', '\0'],
  ])('a request of a batch may have a custom_id of %s', (_what, customId) => {
    expect(read({ custom_id: customId, body: { messages: MESSAGES } })).toMatchObject({ customId });
  });

  it.each([
    ['none', undefined],
    ['a number', 7],
    ['null', null],
    ['empty text', ''],
    ['257 code points', '🦉'.repeat(257)],
    ['half a surrogate pair', '\ud83e'],
    ['an object', { $gt: '' }],
  ])('a request of a batch cannot have a custom_id that is %s', (_what, customId) => {
    expect(faultOf(read({ custom_id: customId, body: { messages: MESSAGES } }))).toMatchObject({
      customId: null,
      code: 'invalid_request',
      param: 'custom_id',
      message: expect.stringContaining('`custom_id`'),
    });
  });

  it.each([
    ['none', undefined, 'invalid_request', 'body', 'body'],
    ['text', 'Hi', 'invalid_request', 'body', 'body'],
    ['an array', [], 'invalid_request', 'body', 'body'],
    ['no messages', {}, 'invalid_request', 'body.messages', '`body.messages`'],
    ['101 messages', { messages: Array(101).fill(MESSAGES[0]) }, 'too_many_messages', 'body.messages', '100'],
    [
      'a message too long',
      { messages: [...MESSAGES, { role: 'user', content: 'x'.repeat(16_001) }] },
      'message_too_long',
      'body.messages[1].content',
      '`body.messages[1].content`',
    ],
    ['an unknown tier', { messages: MESSAGES, model: 'gpt' }, 'invalid_request', 'body.model', '`body.model`'],
  ])('has a result of its own when its body is %s', (_what, body, code, param, rule) => {
    expect(faultOf(read({ custom_id: 'a', body }))).toEqual({
      customId: 'a',
      code,
      param,
      message: expect.stringContaining(rule),
    });
  });

  it.each(['null', '7', '"x"', '[]', '{"custom_id":', '{}}', "{'custom_id':1}"])(
    'a request of a batch is refused by its line’s number: %s',
    (text) => {
      expect(faultOf(toLine({ place: LINE, json: Buffer.from(text) }, false))).toMatchObject({
        customId: null,
        code: 'invalid_request',
        message: expect.stringContaining('Line 7'),
      });
    },
  );

  it('is refused by its place when it is too long, or holds very many values', () => {
    expect(faultOf(toLine({ place: LINE, json: undefined }, true)).message).toContain(String(CHAT_LIMITS.bodyBytesMax));
    const json = Buffer.from(`[${'[],'.repeat(200_000)}[]]`);
    expect(faultOf(toLine({ place: LINE, json }, true)).message).toContain('values');
  });

  it.each([
    ['nested too deep', `${'['.repeat(120)}"]"${']'.repeat(120)}`, 'deeper than 100 levels'],
    ['of too many values', `[${'[],'.repeat(200_000)}[]]`, 'values'],
  ])('keeps its custom_id where its body is %s', (_what, messages, say) => {
    const json = Buffer.from(`{"body": {"entity_id": "pupil", "messages": ${messages}}, "custom_id": "a \\"[{"}`);

    const line = toLine({ place: LINE, json }, true);

    expect(line).toMatchObject({ customId: 'a "[{', entityId: 'pupil' });
    expect(faultOf(line).message).toContain(say);
  });

  it('makes the whole body unreadable where its bytes do, or where it is a part of it', () => {
    const bytes = Buffer.from([0x22, 0xff, 0x22]);
    expect(() => toLine({ place: LINE, json: bytes }, false)).toThrow('Line 7 is not in UTF-8.');
    expect(() => toLine({ place: LINE, json: Buffer.from('{') }, true)).toThrow('Line 7 is not valid JSON');
  });

  it('a request of a batch cannot reach a prototype', () => {
    const item = '{"__proto__":{"custom_id":"a","body":{}},"constructor":1}';
    expect(faultOf(toLine({ place: LINE, json: Buffer.from(item) }, false)).param).toBe('custom_id');
  });
});
