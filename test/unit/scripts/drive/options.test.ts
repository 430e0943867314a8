import { describe, expect, it } from '@jest/globals';

import { parseDriveArguments } from '../../../../scripts/drive/options.ts';

describe('parseDriveArguments', () => {
  it('drives the service of npm start unless another one is named', () => {
    expect(parseDriveArguments(['a.jsonl'])).toMatchObject({
      file: 'a.jsonl',
      url: 'http://127.0.0.1:8080/platform/v1',
      key: undefined,
      stream: false,
      limit: Infinity,
      providerStats: undefined,
    });
  });

  it('takes an address with or without a slash at its end', () => {
    expect(parseDriveArguments(['a.jsonl', '--url', 'http://host/platform/v1/']).url).toBe('http://host/platform/v1');
  });

  it.each([
    [[], /^Name one file/],
    [['a', 'b'], /^Name one file/],
    [['a', '--model', 'gpt'], /^--model must be mobius or oloid, not "gpt"\.$/],
    [['a', '--concurrency', '0'], /^--concurrency must be a whole number from 1 to 1000, not "0"\.$/],
    [['a', '--limit', '1.5'], /^--limit must be a whole number from 1, not "1.5"\.$/],
    [['a', '--url', 'host:80'], /^--url must be a URL/],
    [['a', '--verify'], /^--verify needs --admin-url and --provider-stats/],
    [['a', '--streem'], /--streem/],
  ])('refuses %j in one sentence', (args, sentence) => {
    expect(() => parseDriveArguments(args)).toThrow(sentence);
  });
});
