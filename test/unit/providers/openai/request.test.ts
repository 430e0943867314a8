import { describe, expect, it } from '@jest/globals';

import { toChatCompletionBody } from '../../../../workers/providers/openai/request.ts';
import type { ProviderCall } from '../../../../workers/providers/provider.ts';

const call = (more: Partial<ProviderCall> = {}): ProviderCall => ({
  requestId: 'req_1',
  messages: [{ role: 'user', content: 'Hi "you"\n😀' }],
  model: 'gpt-x',
  maxTokens: 100,
  jsonMode: false,
  stream: false,
  signal: new AbortController().signal,
  ...more,
});

const bodyOf = (more: Partial<ProviderCall> = {}): unknown => JSON.parse(toChatCompletionBody(call(more)));

describe('the body for an OpenAI-compatible server', () => {
  it('is model, messages and max_tokens, and nothing that was not asked for', () => {
    expect(bodyOf()).toEqual({
      model: 'gpt-x',
      messages: [{ role: 'user', content: 'Hi "you"\n😀' }],
      max_tokens: 100,
    });
  });

  it('asks for usage with a stream, which has none by itself', () => {
    expect(bodyOf({ stream: true })).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  it('asks for a JSON object in json_mode', () => {
    expect(bodyOf({ jsonMode: true })).toMatchObject({ response_format: { type: 'json_object' } });
  });

  it('hands on the sampling settings under their names on the wire', () => {
    const sampling = { temperature: 0, topP: 0.5, stop: ['a', 'b'], seed: 7, user: 'u1' };

    expect(bodyOf({ sampling })).toMatchObject({ temperature: 0, top_p: 0.5, stop: ['a', 'b'], seed: 7, user: 'u1' });
  });

  it('sends of a message role and content only', () => {
    const stored = { role: 'user', content: 'x', requestId: 'req_secret' } as const;

    expect(bodyOf({ messages: [stored] })).toMatchObject({ messages: [{ role: 'user', content: 'x' }] });
    expect(toChatCompletionBody(call({ messages: [stored] }))).not.toContain('req_secret');
  });
});
