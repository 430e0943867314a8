import { describe, expect, it } from '@jest/globals';

import { parseEvent, parseMessage, wholeUsage } from '../../../../workers/providers/anthropic.ts';
import { ProviderError } from '../../../../workers/providers/provider.ts';

const event = (value: Record<string, unknown>) => parseEvent(value);
const message = (more: object = {}) => ({
  type: 'message',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 4 },
  ...more,
});

function failureOf(run: () => unknown): ProviderError {
  try {
    run();
  } catch (error) {
    if (error instanceof ProviderError) return error;
    throw error;
  }
  throw new Error('It was accepted');
}

describe('an event of a stream', () => {
  it.each([
    { type: 'thinking_delta', thinking: 'canary' },
    { type: 'signature_delta', signature: 'canary' },
    { type: 'input_json_delta', partial_json: 'canary' },
    { type: 'citations_delta', citation: {} },
    null,
  ])('of another kind of content gives none: %j', (delta) => {
    expect(event({ type: 'content_block_delta', index: 0, delta })).toEqual({ kind: 'other' });
  });

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
    ['stop', 'stop'],
    ['length', 'length'],
    ['sensitive', 'content_filter'],
    ['MAX_TOKENS', 'length'],
    [null, undefined],
  ])('an event of a stream with the stop reason %j means %j', (reason, finishReason) => {
    const read = event({ type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 0 } });

    expect(read).toEqual({ kind: 'progress', finishReason, usage: { output: 0 } });
  });

  it.each(['pause_turn', 'tool_use', 'constructor', 'not a word', 'network_error'])(
    'an event of a stream that stops for %s ends no answer',
    (reason) => {
      const failure = failureOf(() => event({ type: 'message_delta', delta: { stop_reason: reason } }));

      expect(failure).toMatchObject({ fault: 'transient' });
      expect(failure.message).not.toContain('not a word');
    },
  );

  it.each([
    ['overloaded_error', 'transient'],
    ['invalid_request_error', 'caller'],
    ['authentication_error', 'refused'],
  ])('an event of a stream may be an error: %s is %s', (type, fault) => {
    const failure = failureOf(() => event({ type: 'error', error: { type, message: 'canary' } }));

    expect(failure).toMatchObject({ fault });
    expect(failure.stack).not.toContain('canary');
  });

  it.each([{}, { type: 5 }, { error: null }, { type: 'message', error: {} }])(
    'an event of a stream that says nothing is looked past: %j',
    (value) => {
      expect(event(value)).toEqual({ kind: 'other' });
    },
  );

  it.each([{ error: { type: 'overloaded_error' } }, { message: 'overloaded' }, { object: 'error' }])(
    'an event of a stream may be an error without saying so: %j',
    (value) => {
      expect(failureOf(() => event(value))).toMatchObject({ fault: 'transient' });
    },
  );
});

describe('usage', () => {
  it('counts what came from the cache and what went into it', () => {
    expect(wholeUsage({ input: 1, cacheCreation: 20, cacheRead: 300, output: 4 })).toEqual({
      promptTokens: 321,
      completionTokens: 4,
      cachedTokens: 300,
      cacheWriteTokens: 20,
    });
  });

  it('of zero is a number, a missing figure is none', () => {
    expect(wholeUsage({ input: 0, output: 0 })).toEqual({ promptTokens: 0, completionTokens: 0 });
    expect(wholeUsage({ input: 5 })).toBeUndefined();
    expect(wholeUsage({ output: 5, cacheRead: 3 })).toBeUndefined();
  });

  it.each([[null], ['12'], [{ input_tokens: -1, output_tokens: 1 }], [{ input_tokens: 1, output_tokens: 1.5 }]])(
    'usage that makes no sense is none: %j',
    (usage) => {
      expect(parseMessage(message({ usage })).usage).toBeUndefined();
    },
  );

  it('may be in the words of OpenAI', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 4 };

    expect(parseMessage(message({ usage })).usage).toEqual({ promptTokens: 3, completionTokens: 4 });
  });

  it('may stand in the delta of the event that ends an answer', () => {
    const delta = { stop_reason: 'end_turn', usage: { input_tokens: 3, output_tokens: 4 } };

    expect(event({ type: 'message_delta', delta })).toMatchObject({ usage: { input: 3, output: 4 } });
  });

  it('takes a null among the cache figures for nothing', () => {
    const usage = { input_tokens: 1, cache_read_input_tokens: null, output_tokens: 2 };

    expect(parseMessage(message({ usage })).usage).toEqual({ promptTokens: 1, completionTokens: 2 });
  });
});

describe('a complete answer', () => {
  it('a complete answer gives the text of its text blocks', () => {
    const content = [
      { type: 'thinking', thinking: 'hm' },
      { type: 'text', text: 'A' },
      { type: 'text', text: 'B' },
    ];

    expect(parseMessage(message({ content }))).toEqual({
      text: 'AB',
      reasoning: '',
      calls: [],
      finishReason: 'stop',
      usage: { promptTokens: 3, completionTokens: 4 },
    });
  });

  it.each([
    ['without a stop reason', { stop_reason: null }],
    ['that waits for a tool', { stop_reason: 'tool_use' }],
    ['without content', { content: undefined }],
  ])('a complete answer %s is a fault', (_what, more) => {
    expect(failureOf(() => parseMessage(message(more)))).toMatchObject({ fault: 'transient' });
  });
});
