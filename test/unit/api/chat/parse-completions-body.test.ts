import { describe, expect, it } from '@jest/globals';

import { parseCompletionsBody } from '../../../../api/chat/completions-body.ts';

const MESSAGE = { role: 'user', content: 'Hello' };

describe('a body of completions', () => {
  const parse = (fields: object) => parseCompletionsBody({ messages: [MESSAGE], ...fields });

  it.each([
    ['an empty text', ''],
    ['an empty list', []],
    ['a list of empty texts', ['', null, '']],
    ['null', null],
  ])('stops at nothing where `stop` is %s', (_what, stop) => {
    expect(parse({ stop }).request.passed).toEqual({});
  });

  it('stops at the texts of a list that are some', () => {
    expect(parse({ stop: ['', 'END', null] }).request.passed).toEqual({ stop: ['END'] });
  });

  it.each([
    [{ stream_options: { include_usage: null } }],
    [{ response_format: { type: null } }],
    [{ messages: [{ role: 'user', name: null, content: [{ type: 'text', text: 'Hello', annotations: null }] }] }],
    [
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'Hello' },
              { type: 'text', text: null },
            ],
          },
        ],
      },
    ],
  ])('counts null as left out, also within %j', (fields) => {
    expect(parse(fields)).toMatchObject({
      request: { messages: [MESSAGE], jsonMode: false },
      form: { usage: 'last chunk' },
    });
  });

  it('keeps null in metadata, which is the caller’s own', () => {
    expect(parse({ metadata: { a: null } }).request.metadataJson).toBe('{"a":null}');
  });

  it.each([
    [undefined, 'last chunk'],
    [{}, 'last chunk'],
    [{ include_usage: true }, 'own chunk'],
    [{ include_usage: false }, 'none'],
  ])('has the usage of %j: %s', (options, usage) => {
    expect(parse({ stream: true, ...(options && { stream_options: options }) }).form).toEqual({ usage });
  });

  it('asks for at most what the service allows, and lets the model’s window say less', () => {
    expect(parse({ max_tokens: 1_000_000 }).request).toMatchObject({ maxTokens: 16_384, fitsTokens: true });
    expect(parse({ max_tokens: 5, max_completion_tokens: 20_000 }).request).toMatchObject({ maxTokens: 16_384 });
    expect(parse({}).request).toMatchObject({ maxTokens: 4_096, fitsTokens: true });
    expect(() => parse({ max_tokens: 0 })).toThrow('`max_tokens` must be');
  });

  it('passes on the settings of OpenAI’s protocol, and none that changes nothing', () => {
    const set = { frequency_penalty: 1, presence_penalty: -1, reasoning_effort: 'low', verbosity: 'low' };
    expect(parse(set).request.passed).toEqual(set);
    expect(parse({ frequency_penalty: 0, presence_penalty: 0 }).request.passed).toEqual({});
    expect(() => parse({ presence_penalty: 3 })).toThrow('`presence_penalty` must be');
  });

  it('takes json_mode, this service’s own word for it', () => {
    expect(parse({ json_mode: true }).request.jsonMode).toBe(true);
  });

  it.each([
    [{ n: 2 }, '`n` must be 1'],
    [{ logprobs: true }, '`logprobs` is not supported'],
    [{ logit_bias: { 1: 1 } }, '`logit_bias` is not supported'],
    [{ web_search_options: {} }, '`web_search_options` is not supported'],
  ])('is refused with %j', (fields, say) => {
    expect(() => parse(fields)).toThrow(say);
  });
});
