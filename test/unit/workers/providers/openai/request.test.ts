import { describe, expect, it } from '@jest/globals';

import type { Provider } from '../../../../../shared/domain/routing.ts';
import { openAiHeaders, toChatCompletionBody } from '../../../../../workers/providers/openai.ts';
import type { ProviderCall } from '../../../../../workers/providers/provider.ts';

const OPEN: Provider = {
  name: 'p',
  kind: 'openai',
  baseUrl: 'https://models.example.com/v1',
  timeoutMs: 1_000,
  firstTokenTimeoutMs: 1_000,
  maxRetries: 0,
};
const PROVIDER: Provider = { ...OPEN, apiKey: 'sk-secret' };

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

const bodyOf = (more: Partial<ProviderCall> = {}): unknown => JSON.parse(toChatCompletionBody(PROVIDER, call(more)));

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

  it('does not ask Mistral for it, which reports it anyway and refuses the question', () => {
    const provider = { ...PROVIDER, baseUrl: 'https://api.mistral.ai/v1' };
    const body: unknown = JSON.parse(toChatCompletionBody(provider, call({ stream: true })));

    expect(body).toEqual({ ...(bodyOf() as object), stream: true });
  });

  it('the body for an OpenAI-compatible server asks for a JSON object in json_mode', () => {
    expect(bodyOf({ jsonMode: true })).toMatchObject({ response_format: { type: 'json_object' } });
  });

  it('hands on the fields of the protocol as they came, and none of them in place of its own', () => {
    const passed = { temperature: 0, stop: ['a', 'b'], logit_bias: { 7: 1 }, top_k: 5 };
    const own = { model: 'other', messages: [], stream: false, stream_options: {}, max_tokens: 1 };

    expect(bodyOf({ passed: { ...passed, ...own }, stream: true })).toEqual(
      Object.assign({}, bodyOf({ stream: true }), passed),
    );
  });

  it('sends a message that says more than text in the form in which it came', () => {
    const sent = { role: 'tool', tool_call_id: 'call_1', content: '4' };

    expect(bodyOf({ messages: [{ role: 'tool', content: '4', sent }] })).toMatchObject({ messages: [sent] });
  });

  it('has no half of a surrogate pair, for which servers that keep UTF-8 have no letter and an error of their own', () => {
    const messages = [{ role: 'user', content: 'Hi \ud83d there 😀 \\ud83d' }] as const;

    const body = toChatCompletionBody(PROVIDER, call({ messages, passed: { stop: ['\udc00', 'x'], user: 'u\ud800' } }));

    expect(JSON.parse(body)).toMatchObject({
      messages: [{ role: 'user', content: 'Hi \ufffd there 😀 \\ud83d' }],
      stop: ['\ufffd', 'x'],
      user: 'u\ufffd',
    });
  });

  it('sends of a message role and content only', () => {
    const stored = { role: 'user', content: 'x', requestId: 'req_secret' } as const;

    expect(bodyOf({ messages: [stored] })).toMatchObject({ messages: [{ role: 'user', content: 'x' }] });
    expect(toChatCompletionBody(PROVIDER, call({ messages: [stored] }))).not.toContain('req_secret');
  });

  it('says JSON for a caller who did not, as OpenAI refuses to give JSON unless it is asked for in words', () => {
    expect(bodyOf({ jsonMode: true })).toMatchObject({
      messages: [{ role: 'system', content: expect.stringContaining('JSON') }, { role: 'user' }],
    });
    const messages = [{ role: 'user', content: 'A river, as json' }] as const;
    expect(bodyOf({ jsonMode: true, messages })).toMatchObject({ messages });
  });

  it.each([
    ...['https://api.openai.com/v1', 'https://eu.api.openai.com/v1', 'https://x.openai.azure.com/openai/v1'],
    'https://x.openai.azure.com/openai/v1/?api-version=preview',
  ])('limits the length at %s by the one name that reasoning models take', (baseUrl) => {
    const body: unknown = JSON.parse(toChatCompletionBody({ ...PROVIDER, baseUrl }, call()));
    expect(body).toEqual({ model: 'gpt-x', messages: call().messages, max_completion_tokens: 100 });
  });
});

describe('the credential', () => {
  it.each([
    ['https://models.example.com/v1', { Authorization: 'Bearer sk-secret' }],
    ['https://name.openai.azure.com/openai/v1', { Authorization: 'Bearer sk-secret' }],
    ['https://name.openai.azure.com/openai/deployments/d?api-version=2024-10-21', { 'api-key': 'sk-secret' }],
  ])('the credential goes to %s in the header that it reads', (baseUrl, headers) => {
    expect(openAiHeaders({ ...PROVIDER, baseUrl })).toEqual(headers);
  });

  it('the credential is left out where there is none', () => {
    expect(openAiHeaders(OPEN)).toEqual({});
  });
});
