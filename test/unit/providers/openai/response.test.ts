import { describe, expect, it } from '@jest/globals';

import { parseCompletion, parseRetryAfter } from '../../../../workers/providers/openai/response.ts';
import { ProviderError, faultOfStatus } from '../../../../workers/providers/provider.ts';

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
  it('gives its text', () => {
    expect(parseCompletion(chunk({ delta: { content: 'Hi' }, finish_reason: null }), 'delta')).toEqual({
      text: 'Hi',
      finishReason: undefined,
      usage: undefined,
    });
  });

  it.each([[{ delta: { role: 'assistant' } }], [{ delta: { content: null } }], [{ delta: {} }], [{}]])(
    'without text is no fault: %j',
    (choice) => {
      expect(parseCompletion(chunk(choice), 'delta').text).toBe('');
    },
  );

  it('without a choice may carry the usage', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };

    expect(parseCompletion(JSON.stringify({ choices: [], usage }), 'delta')).toEqual({
      text: '',
      finishReason: undefined,
      usage: { promptTokens: 3, completionTokens: 4 },
    });
  });

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['eos', 'stop'],
    ['', undefined],
    [null, undefined],
  ])('with the finish reason %j means %j', (given, expected) => {
    expect(parseCompletion(chunk({ delta: {}, finish_reason: given }), 'delta').finishReason).toBe(expected);
  });
});

describe('usage', () => {
  const usageOf = (usage: unknown) => parseCompletion(chunk({ delta: {} }, { usage }), 'delta').usage;

  it('of zero is a number', () => {
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
  ])('that makes no sense is none: %j', (usage) => {
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

  it.each([[{ error: { message: 'overloaded' } }], [{ error: 'overloaded' }]])('is an error object: %j', (body) => {
    expect(errorOf(JSON.stringify(body))).toMatchObject({ fault: 'transient' });
  });

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

describe('Retry-After', () => {
  const NOW = Date.parse('2026-11-21T12:00:00Z');

  it.each([
    [undefined, 0],
    ['2', 2_000],
    ['0', 0],
    ['0.5', 500],
    ['-3', 0],
    ['', 0],
    ['soon', 0],
    ['Sat, 21 Nov 2026 12:00:05 GMT', 5_000],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
  ])('of %j means %d ms', (header, expected) => {
    expect(parseRetryAfter(header, NOW)).toBe(expected);
  });
});

describe('a status', () => {
  it.each([
    [408, 'transient'],
    [409, 'transient'],
    [429, 'transient'],
    [500, 'transient'],
    [503, 'transient'],
    [400, 'caller'],
    [413, 'caller'],
    [422, 'caller'],
    [401, 'refused'],
    [402, 'refused'],
    [403, 'refused'],
    [404, 'refused'],
    [302, 'refused'],
  ])('of %d is %s', (status, fault) => {
    expect(faultOfStatus(status)).toBe(fault);
  });
});
