import { describe, expect, it } from '@jest/globals';

import { createEndpoint, NetworkError } from '../../../../workers/providers/http-call.ts';
import { postToProvider, readDocument } from '../../../../workers/providers/post-to-provider.ts';
import {
  errorInAnswer,
  faultOfAnswer,
  parseError,
  parseRetryAfter,
  faultOfStatus,
} from '../../../../workers/providers/provider.ts';

describe('an error inside an answer', () => {
  it.each([
    [{ type: 'overloaded_error', message: 'Overloaded' }, 'transient'],
    [{ type: 'api_error' }, 'transient'],
    [{ type: 'rate_limit_error' }, 'transient'],
    [{ type: 'timeout_error' }, 'transient'],
    [{ type: 'authentication_error' }, 'refused'],
    [{ type: 'permission_error' }, 'refused'],
    [{ type: 'billing_error' }, 'refused'],
    [{ type: 'not_found_error' }, 'refused'],
    [{ type: 'invalid_request_error' }, 'caller'],
    [{ type: 'request_too_large' }, 'caller'],
    [{ code: 502, message: 'Provider returned error' }, 'transient'],
    [{ code: 403, message: 'moderation' }, 'refused'],
    [{ object: 'error', type: 'BadRequestError', code: 400 }, 'caller'],
    [{ code: '429', type: 'throttling_error' }, 'transient'],
    [{ code: 'context_length_exceeded', type: 'invalid_request_error' }, 'too_long'],
    [{ type: 'invalid_request_error', message: 'prompt is too long: 215000 tokens > 200000 maximum' }, 'too_long'],
    [{ code: 400, message: "This model's maximum context length is 4096 tokens. However, you asked" }, 'too_long'],
    [{ code: 400, message: 'the request exceeds the available context size. try increasing it' }, 'too_long'],
    [{ message: 'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000', code: 400 }, 'too_long'],
    [{ message: 'Input is too long for requested model.', code: 400 }, 'too_long'],
    ['However, the model is loaded with context length of only 4096 tokens, which is not enough.', 'too_long'],
    [{ code: 'tool_use_failed', type: 'invalid_request_error', failed_generation: '<function=' }, 'flawed'],
    [{ code: 'content_filter', message: 'The response was filtered' }, 'filtered'],
    [{ code: 'content_policy_violation', type: 'invalid_request_error' }, 'filtered'],
    [{ type: 'invalid_request_error', message: 'Output blocked by content filtering policy' }, 'filtered'],
    ['Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO', 'filtered'],
    [{ type: 'constructor' }, 'transient'],
    ['over capacity', 'transient'],
    [null, 'transient'],
  ])('an error inside an answer %j is %s', (error, fault) => {
    expect(errorInAnswer(error)).toMatchObject({ fault });
  });

  it('is named by the provider’s word, never by its sentence', () => {
    expect(errorInAnswer({ type: 'overloaded_error', message: 'canary' }).message).toBe(
      'The provider reported an error: overloaded_error',
    );
  });
});

describe('an error status whose body knows better', () => {
  it.each([
    [400, [{ error: { code: 400, message: 'API key not valid. Please pass one.', status: 'X' } }], 'refused'],
    [400, { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xx***yy.' }, 'refused'],
    [413, { error: { message: 'Request too large', type: 'tokens', code: 'rate_limit_exceeded' } }, 'transient'],
    [400, [{ error: { message: 'The input token count (9) exceeds the maximum number of tokens' } }], 'too_long'],
    [400, { error: "This model's maximum prompt length is 131072 but the request contains 200000." }, 'too_long'],
    [
      422,
      { error: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 1 and 2' },
      'too_long',
    ],
    [
      400,
      { message: "The input (39000 tokens) is longer than the model's context length (32768 tokens)." },
      'too_long',
    ],
    [400, { error: { type: 'invalid_request_error', code: 'json_validate_failed' } }, 'flawed'],
    [404, { error: { type: 'invalid_request_error' } }, 'refused'],
  ])('is what its words say: %d %j is %s', (status, body, fault) => {
    expect(faultOfAnswer(status, parseError(JSON.stringify(body)))).toBe(fault);
  });
});

describe('a host that cannot be reached', () => {
  it('is silent, and has done no work', async () => {
    const post = () => Promise.reject(new NetworkError({ code: 'UND_ERR_CONNECT_TIMEOUT' }, false));
    const http = { post, close: () => Promise.resolve() };
    const call = { endpoint: createEndpoint('http://a/', {}), body: '', signal: new AbortController().signal };

    await expect(postToProvider(http, call, () => readDocument(1))).rejects.toMatchObject({
      fault: 'silent',
      isRefusal: true,
    });
  });
});

describe('an account without money', () => {
  it.each([
    [429, { error: { code: 'insufficient_quota', type: 'insufficient_quota', message: 'You exceeded your quota' } }],
    [400, { error: { type: 'invalid_request_error', message: 'Your credit balance is too low to access the API.' } }],
    [402, { error: { type: 'billing_error' } }],
  ])('is a provider that will not serve us, whatever the status: %d', (status, body) => {
    expect(faultOfAnswer(status, parseError(JSON.stringify(body)))).toBe('refused');
  });

  it('an account without money is not every refused request', () => {
    const body = { error: { type: 'invalid_request_error', message: 'max_tokens: must be at most 8192' } };

    expect(faultOfAnswer(400, parseError(JSON.stringify(body)))).toBe('caller');
  });
});

describe('a content filter', () => {
  it.each([
    [
      'OpenRouter’s',
      403,
      {
        error: {
          code: 403,
          message: 'some/model requires moderation on OpenRouter. Your input was flagged for "violence".',
          metadata: { reasons: ['violence'], flagged_input: 'canary' },
        },
      },
    ],
    [
      'OpenRouter’s, in other words',
      403,
      { error: { code: 403, message: 'No.', metadata: { flagged_input: 'canary' } } },
    ],
    [
      'xAI’s',
      403,
      {
        code: 'The caller does not have permission to execute the specified operation',
        error: 'Content violates usage guidelines. Team: canary, Failed check: SAFETY_CHECK_TYPE_BIO',
      },
    ],
    [
      'Anthropic’s',
      400,
      {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' },
      },
    ],
    ['DeepSeek’s', 400, { error: { message: 'Content Exists Risk', type: 'invalid_request_error', param: null } }],
    ['Azure’s', 400, { error: { code: 'content_filter', message: 'The response was filtered' } }],
    ['a gateway’s', 403, { error: { code: 'content_policy_violation', message: 'No.' } }],
  ])('%s is told by %d and its words', (_whose, status, body) => {
    const error = parseError(JSON.stringify(body));

    expect(faultOfAnswer(status, error)).toBe('filtered');
    expect(error.word).not.toContain('canary');
  });

  it.each([
    [{ error: { code: 403, message: 'Key limit exceeded' } }],
    [{ error: { type: 'permission_error', message: 'Your API key does not have permission to use this resource.' } }],
    [{ error: 'Forbidden' }],
    [''],
    ['Forbidden'],
  ])('is not every 403: %j', (body) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    expect(faultOfAnswer(403, parseError(text))).toBe('refused');
  });
});

describe('a firewall in front of a provider', () => {
  it.each(['<html><title>Attention Required!</title></html>', '\n<!doctype html>', 'error code: 1020'])(
    'says 403 without an error of the API: %j',
    (body) => {
      expect(faultOfAnswer(403, parseError(body))).toBe('blocked');
      expect(faultOfAnswer(401, parseError(body))).toBe('refused');
    },
  );
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
  ])('Retry-After of %j means %d ms', (header, expected) => {
    expect(parseRetryAfter((name) => (name === 'retry-after' ? header : undefined), NOW)).toBe(expected);
  });

  it('is as exact as OpenAI’s header in milliseconds, where there is one', () => {
    expect(parseRetryAfter((name) => (name === 'retry-after' ? '2' : '40'), NOW)).toBe(40);
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
  ])('a status of %d is %s', (status, fault) => {
    expect(faultOfStatus(status)).toBe(fault);
  });
});
