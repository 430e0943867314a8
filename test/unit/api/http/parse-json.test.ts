import { describe, expect, it } from '@jest/globals';

import { parseJson } from '../../../../api/http/json-body.ts';

const nested = (depth: number) => Buffer.from('['.repeat(depth) + ']'.repeat(depth));

describe('JSON from outside', () => {
  it.each([
    ['arrays', nested(100), 'value'],
    ['arrays', nested(101), 'too deep'],
    ['objects', Buffer.from('{"a":'.repeat(101) + '1' + '}'.repeat(101)), 'too deep'],
    ['many side by side', Buffer.from(`[${Array<string>(1_000).fill('[[]]').join(',')}]`), 'value'],
    ['brackets in texts', Buffer.from(JSON.stringify('[{"'.repeat(1_000))), 'value'],
    ['texts that end in backslashes', Buffer.from(JSON.stringify(['\\\\', '[', '\\"', '['.repeat(200)])), 'value'],
  ])('is nested 100 deep at most: %s', (_what, json, kind) => {
    expect(parseJson(json).kind).toBe(kind);
  });

  it('has as many values as it may where it is large', () => {
    const values = Buffer.from(`[${Array<string>(200_000).fill('1').join(',')}]`);
    expect(parseJson(values, 100_000).kind).toBe('too many values');
    expect(parseJson(values).kind).toBe('value');
  });
});
