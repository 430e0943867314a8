import { describe, expect, it } from '@jest/globals';

import { parseObject } from '../../../../../workers/providers/call-provider.ts';
import { parseCompletion } from '../../../../../workers/providers/openai.ts';
import { ProviderError } from '../../../../../workers/providers/provider.ts';

const parse = (json: string, part: 'delta' | 'message') => parseCompletion(parseObject(json), part);
const chunk = (choice: object, more: object = {}) => JSON.stringify({ choices: [choice], ...more });

function errorOf(json: string, part: 'delta' | 'message' = 'delta'): ProviderError {
  try {
    parse(json, part);
  } catch (error) {
    if (error instanceof ProviderError) return error;
    throw error;
  }
  throw new Error('It was accepted');
}

describe('a chunk of a stream', () => {
  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['eos', 'stop'],
    ['tool_calls', 'tool_calls'],
    ['function_call', 'tool_calls'],
    ['model_length', 'length'],
    ['', undefined],
    ['null', undefined],
    [null, undefined],
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['max_output_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['token_limit', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['sensitive', 'content_filter'],
    ['refusal', 'content_filter'],
    ['guardrail_intervened', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['BLOCKLIST', 'content_filter'],
    ['SPII', 'content_filter'],
    ['content-filter', 'content_filter'],
  ])('a chunk of a stream with the finish reason %j means %j', (given, expected) => {
    expect(parse(chunk({ delta: {}, finish_reason: given }), 'delta').finishReason).toBe(expected);
  });
});

describe('a finish reason', () => {
  const read = (choice: object) => parse(chunk({ delta: {}, ...choice }), 'delta');

  it('that is not known is an ordinary end, and the log may show its word', () => {
    expect(read({ finish_reason: 'paused_for_tea' })).toMatchObject({
      finishReason: 'stop',
      unknownReason: 'paused_for_tea',
    });
    expect(read({ finish_reason: 'tell me a story' })).toMatchObject({ unknownReason: 'unreadable' });
    expect(read({ finish_reason: 'STOP' })).toMatchObject({ unknownReason: undefined });
  });

  it('may have its name in camel case, or be the model’s own alone', () => {
    expect(read({ finishReason: 'MAX_TOKENS' }).finishReason).toBe('length');
    expect(read({ finish_reason: null, native_finish_reason: 'SAFETY' }).finishReason).toBe('content_filter');
    expect(read({ finish_reason: 'stop', native_finish_reason: 'STOP' }).finishReason).toBe('stop');
  });
});

describe('the finish reason of an answer that was broken off', () => {
  it.each([
    ...['error', 'abort', 'insufficient_system_resource', 'network_error', 'malformed_response', 'timeout'],
    ...['MALFORMED_FUNCTION_CALL', 'cancelled', 'server_error'],
  ])('the finish reason of an answer that was broken off is a fault: %s', (reason) => {
    expect(errorOf(chunk({ delta: {}, finish_reason: reason }))).toMatchObject({ fault: 'transient' });
  });
});

describe('a content that is a list of parts', () => {
  it('a content that is a list of parts gives the text ones', () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
      { type: 'text', text: 'A' },
      { type: 'text', text: 'B' },
    ];

    expect(parse(chunk({ delta: { content } }), 'delta').text).toBe('AB');
  });
});

describe('usage', () => {
  const usageOf = (usage: unknown) => parse(chunk({ delta: {} }, { usage }), 'delta').usage;

  const details = (reasoning: number) => ({ completion_tokens_details: { reasoning_tokens: reasoning } });
  const cached = (tokens: number) => ({ prompt_tokens_details: { cached_tokens: tokens } });

  it.each([
    ['reasoning on top, as xAI counts it', { total_tokens: 329, ...details(300) }, [20, 309, 300]],
    ['reasoning inside', { total_tokens: 29, ...details(5) }, [20, 9, 5]],
    ['reasoning without a total, within the answer', details(5), [20, 9, 5]],
    ['reasoning without a total, more than the answer has', details(300), [20, 309, 300]],
    ['reasoning inside, although it is more', { total_tokens: 29, ...details(300) }, [20, 9, 9]],
    ['cached tokens inside', { total_tokens: 29, ...cached(16) }, [20, 9, 0, 16]],
    ['cached tokens on top', { total_tokens: 1_053, ...cached(1_024) }, [1_044, 9, 0, 1_024]],
    ['cached tokens without a total, more than the prompt has', cached(1_024), [1_044, 9, 0, 1_024]],
    ['both on top', { total_tokens: 1_353, ...cached(1_024), ...details(300) }, [1_044, 309, 300, 1_024]],
    ['details that make no sense', { total_tokens: 29, ...details(-1), ...cached(1.5) }, [20, 9]],
    ['cache writes on top', { total_tokens: 1_053, cache_creation_input_tokens: 1_024 }, [1_044, 9, 0, 0, 1_024]],
    ['reasoning in the total alone, as Google counts it', { total_tokens: 122 }, [20, 102, 93]],
    ['cached tokens inside, and reasoning in the total', { total_tokens: 122, ...cached(16) }, [20, 102, 93, 16]],
    [
      'cached tokens on top, and reasoning in the total',
      { total_tokens: 1_099, ...cached(1_000) },
      [1_020, 79, 70, 1_000],
    ],
    ['reasoning inside, in a total that nothing explains', { total_tokens: 500, ...details(5) }, [20, 9, 5]],
    ['a total that is too small', { total_tokens: 9 }, [20, 9]],
  ])(
    'usage with %s',
    (_what, more, [promptTokens, completionTokens, reasoningTokens, cachedTokens, cacheWriteTokens]) => {
      const kinds = Object.entries({ reasoningTokens, cachedTokens, cacheWriteTokens }).filter(([, tokens]) => tokens);

      expect(usageOf({ prompt_tokens: 20, completion_tokens: 9, ...more })).toEqual({
        ...{ promptTokens, completionTokens },
        ...Object.fromEntries(kinds),
      });
    },
  );

  it('usage may be in the words of the newer API', () => {
    const said = {
      input_tokens: 20,
      output_tokens: 9,
      total_tokens: 329,
      output_tokens_details: { reasoning_tokens: 300 },
    };

    expect(usageOf(said)).toEqual({ promptTokens: 20, completionTokens: 309, reasoningTokens: 300 });
  });

  describe.each(['delta', 'message'] as const)('of a choice (%s)', (part) => {
    const said = { prompt_tokens: 20, completion_tokens: 9 };
    const read = (own: object | null, top: object | null) =>
      parse(chunk({ [part]: {}, finish_reason: 'stop', usage: own }, { usage: top }), part).usage;

    it('usage of a choice counts as Moonshot sends it', () => {
      expect(read(said, null)).toEqual({ promptTokens: 20, completionTokens: 9 });
    });

    it('usage of a choice and on top is one count', () => {
      expect(read(said, said)).toEqual({ promptTokens: 20, completionTokens: 9 });
      expect(read(said, { prompt_tokens: 0, completion_tokens: 0 })).toEqual({ promptTokens: 20, completionTokens: 9 });
    });
  });

  it.each([
    [undefined],
    [null],
    ['12'],
    [{}],
    [{ prompt_tokens: 5 }],
    [{ prompt_tokens: '5.5', completion_tokens: 5 }],
    [{ prompt_tokens: -1, completion_tokens: 5 }],
    [{ prompt_tokens: 1.5, completion_tokens: 5 }],
    [{ prompt_tokens: 1e300, completion_tokens: 5 }],
  ])('usage that makes no sense is none: %j', (usage) => {
    expect(usageOf(usage)).toBeUndefined();
  });
});

describe('an answer that cannot be read', () => {
  it.each([
    '',
    '{',
    'null',
    '[]',
    '"text"',
    '{}',
    '{"choices":{}}',
    '{"choices":"none"}',
    '{"choices":[]}',
    '{"choices":[{"index":1,"message":{"content":"Hi"},"finish_reason":"stop"}]}',
  ])('is the provider’s fault, and another try may help: %s', (json) => {
    expect(errorOf(json, 'message')).toMatchObject({ fault: 'transient' });
  });

  it.each([[{ message: '', type: '', param: '', code: null }], [{}], [''], [false], [0], [null]])(
    'is none where its error says nothing: %j',
    (error) => {
      const choice = { delta: { content: 'Hi' } };

      expect(parse(chunk(choice, { error, x_groq: { error } }), 'delta').text).toBe('Hi');
    },
  );

  it('never quotes the conversation, not even in its causes', () => {
    for (const json of ['canary {', '{"error":{"message":"canary","code":"canary canary"}}', '"canary"']) {
      const error = errorOf(json);
      expect(`${error.stack ?? ''} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain('canary');
    }
  });

  it('names the provider’s own code, where it looks like one', () => {
    const body = { error: { message: 'canary', code: 'context_length_exceeded', type: 'invalid_request_error' } };

    expect(errorOf(JSON.stringify(body)).message).toContain('context_length_exceeded');
  });
});
