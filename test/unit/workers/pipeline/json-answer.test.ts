import { describe, expect, it } from '@jest/globals';

import { isJsonObject } from '../../../../workers/pipeline/caller-error.ts';

describe('an answer in json_mode', () => {
  it.each(['{}', '{"a":[1,2]}', ' \n{"a":null}\n'])('an answer in json_mode may be the object %j', (text) => {
    expect(isJsonObject(text)).toBe(true);
  });

  it.each(['', 'null', '1', '"text"', '[1]', '{"a":1', '{"a":1} trailing', '```json\n{}\n```'])(
    'an answer in json_mode may not be %j',
    (text) => {
      expect(isJsonObject(text)).toBe(false);
    },
  );
});
