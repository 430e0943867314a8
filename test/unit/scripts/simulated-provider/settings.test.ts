import { describe, expect, it } from '@jest/globals';
import { parseSettingsQuery, SettingsError } from '../../../../scripts/simulated-provider/settings.ts';

describe('parseSettingsQuery', () => {
  it('reads every setting of a model name', () => {
    const query =
      'first_token_ms=200&chunk_ms=20&chunks=40&fail=truncate&status=503&retry_after=7&fail_rate=0.25&fail_after=3' +
      '&fail_times=2&words=10&tokens=12&text=a%26b+c&echo=1&finish_reason=content_filter&json=invalid_once' +
      '&moderation_status=503&moderation_ms=5';

    expect(parseSettingsQuery(query)).toEqual({
      first_token_ms: 200,
      chunk_ms: 20,
      chunks: 40,
      fail: 'truncate',
      status: 503,
      retry_after: 7,
      fail_rate: 0.25,
      fail_after: 3,
      fail_times: 2,
      words: 10,
      tokens: 12,
      text: 'a&b c',
      echo: true,
      finish_reason: 'content_filter',
      json: 'invalid_once',
      moderation_status: 503,
      moderation_ms: 5,
    });
  });

  it('reads nothing from an empty query', () => {
    expect(parseSettingsQuery('')).toEqual({});
  });

  it.each([
    ['first_token_ms=soon', 'first_token_ms must be a number.'],
    ['chunk_ms=-1', 'chunk_ms must be greater than or equal to 0.'],
    ['chunks=0', 'chunks must be greater than or equal to 1.'],
    ['chunks=1.5', 'chunks must be an integer.'],
    ['fail=explode', 'fail must be one of ['],
    ['fail_rate=2', 'fail_rate must be less than or equal to 1.'],
    ['status=200', 'status must be greater than or equal to 400.'],
    ['echo=maybe', 'echo must be a boolean.'],
    [
      'finish_reason=No%21',
      'finish_reason with value No! fails to match the lower-case letters and underscores pattern.',
    ],
    ['json=sometimes', 'json must be one of ['],
    ['frist_token_ms=1', 'frist_token_ms is not a setting; there are first_token_ms, chunk_ms'],
    ['chunks=1&chunks=2', 'chunks is given twice.'],
    ['constructor=1', 'constructor is not a setting'],
  ])('names the setting at fault in %s', (query, sentence) => {
    expect(() => parseSettingsQuery(query)).toThrow(SettingsError);
    expect(() => parseSettingsQuery(query)).toThrow(sentence);
  });
});
