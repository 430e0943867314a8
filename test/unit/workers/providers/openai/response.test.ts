import { describe, expect, it } from '@jest/globals';

import { parseCompletion } from '../../../../../workers/providers/openai/response.ts';
import { ProviderError } from '../../../../../workers/providers/provider.ts';

const chunk = (choice: object, more: object = {}) => JSON.stringify({ choices: [choice], ...more });

function errorOf(json: string, part: 'delta' | 'message' = 'delta'): ProviderError {
  try {
    parseCompletion(json, part);
  } catch (error) {
    if (error instanceof ProviderError) return error;
    throw error;
  }
  throw new Error('It was accepted');
}

describe('a chunk of a stream', () => {
  it('a chunk of a stream gives its text', () => {
    expect(parseCompletion(chunk({ delta: { content: 'Hi' }, finish_reason: null }), 'delta')).toEqual({
      text: 'Hi',
      finishReason: undefined,
      usage: undefined,
      wantsTool: false,
    });
  });

  it.each([[{ delta: { role: 'assistant' } }], [{ delta: { content: null } }], [{ delta: {} }], [{}]])(
    'a chunk of a stream without text is no fault: %j',
    (choice) => {
      expect(parseCompletion(chunk(choice), 'delta').text).toBe('');
    },
  );

  it('a chunk of a stream without a choice may carry the usage', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };

    expect(parseCompletion(JSON.stringify({ choices: [], usage }), 'delta')).toEqual({
      text: '',
      finishReason: undefined,
      usage: { promptTokens: 3, completionTokens: 4 },
      wantsTool: false,
    });
  });

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['eos', 'stop'],
    ['tool_calls', 'stop'],
    ['function_call', 'stop'],
    ['model_length', 'length'],
    ['', undefined],
    [null, undefined],
  ])('a chunk of a stream with the finish reason %j means %j', (given, expected) => {
    expect(parseCompletion(chunk({ delta: {}, finish_reason: given }), 'delta').finishReason).toBe(expected);
  });
});

describe('the finish reason of an answer that was broken off', () => {
  it.each(['error', 'abort', 'insufficient_system_resource'])(
    'the finish reason of an answer that was broken off is a fault: %s',
    (reason) => {
      expect(errorOf(chunk({ delta: {}, finish_reason: reason }))).toMatchObject({ fault: 'transient' });
    },
  );
});

describe('a content that is a list of parts', () => {
  it('a content that is a list of parts gives the text ones', () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
      { type: 'text', text: 'A' },
      { type: 'text', text: 'B' },
    ];

    expect(parseCompletion(chunk({ delta: { content } }), 'delta').text).toBe('AB');
  });
});

describe('usage', () => {
  const usageOf = (usage: unknown) => parseCompletion(chunk({ delta: {} }, { usage }), 'delta').usage;

  const details = (reasoning: number) => ({ completion_tokens_details: { reasoning_tokens: reasoning } });
  const cached = (tokens: number) => ({ prompt_tokens_details: { cached_tokens: tokens } });

  it.each([
    ['reasoning on top, as xAI counts it', { total_tokens: 329, ...details(300) }, [20, 309, 300]],
    ['reasoning inside', { total_tokens: 29, ...details(5) }, [20, 9, 5]],
    ['reasoning without a total, within the answer', details(5), [20, 9, 5]],
    ['reasoning without a total, more than the answer has', details(300), [20, 309, 300]],
    ['reasoning inside, although it is more', { total_tokens: 29, ...details(300) }, [20, 9, 9]],
    ['cached tokens inside', { total_tokens: 29, ...cached(16) }, [20, 9]],
    ['cached tokens on top', { total_tokens: 1_053, ...cached(1_024) }, [1_044, 9]],
    ['cached tokens without a total, more than the prompt has', cached(1_024), [1_044, 9]],
    ['both on top', { total_tokens: 1_353, ...cached(1_024), ...details(300) }, [1_044, 309, 300]],
    ['details that make no sense', { total_tokens: 29, ...details(-1), ...cached(1.5) }, [20, 9]],
    ['a total that nothing explains', { total_tokens: 500 }, [20, 9]],
  ])('usage with %s', (_what, more, [promptTokens, completionTokens, reasoningTokens]) => {
    const expected = { promptTokens, completionTokens, ...(reasoningTokens === undefined ? {} : { reasoningTokens }) };

    expect(usageOf({ prompt_tokens: 20, completion_tokens: 9, ...more })).toEqual(expected);
  });

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
      parseCompletion(chunk({ [part]: {}, finish_reason: 'stop', usage: own }, { usage: top }), part).usage;

    it('usage of a choice counts as Moonshot sends it', () => {
      expect(read(said, null)).toEqual({ promptTokens: 20, completionTokens: 9 });
    });

    it('usage of a choice and on top is one count', () => {
      expect(read(said, said)).toEqual({ promptTokens: 20, completionTokens: 9 });
      expect(read(said, { prompt_tokens: 0, completion_tokens: 0 })).toEqual({ promptTokens: 20, completionTokens: 9 });
    });
  });

  it('usage of zero is passed on', () => {
    expect(usageOf({ prompt_tokens: 0, completion_tokens: 0 })).toEqual({ promptTokens: 0, completionTokens: 0 });
  });

  it.each([
    [undefined],
    [null],
    ['12'],
    [{}],
    [{ prompt_tokens: 5 }],
    [{ prompt_tokens: '5', completion_tokens: 5 }],
    [{ prompt_tokens: -1, completion_tokens: 5 }],
    [{ prompt_tokens: 1.5, completion_tokens: 5 }],
    [{ prompt_tokens: 1e300, completion_tokens: 5 }],
  ])('usage that makes no sense is none: %j', (usage) => {
    expect(usageOf(usage)).toBeUndefined();
  });
});

describe('an answer that cannot be read', () => {
  it.each(['', '{', 'null', '[]', '"text"', '{}', '{"choices":{}}', '{"choices":"none"}'])(
    'is the provider’s fault, and another try may help: %s',
    (json) => {
      expect(errorOf(json)).toMatchObject({ fault: 'transient' });
    },
  );

  it('is one without a choice, where it must have one', () => {
    expect(errorOf('{"choices":[]}', 'message')).toMatchObject({ fault: 'transient' });
  });

  it.each([[{ error: { message: 'overloaded' } }], [{ error: 'overloaded' }]])(
    'an answer that cannot be read is an error object: %j',
    (body) => {
      expect(errorOf(JSON.stringify(body))).toMatchObject({ fault: 'transient' });
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
