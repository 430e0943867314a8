import { describe, expect, it } from '@jest/globals';

import { figure, formatTable } from '../../../../scripts/bench/format-table.ts';

describe('formatTable', () => {
  it('makes every column as wide as its longest cell', () => {
    expect(formatTable(['a', 'system', 'req/s'], [['1', 'floor', '1234567']])).toEqual([
      'a  system    req/s',
      '-  ------  -------',
      '1  floor   1234567',
    ]);
  });
});

describe('figure', () => {
  it.each([
    [1234.5, '1235'],
    [12.34, '12.3'],
    [0.123, '0.12'],
    [undefined, '-'],
    [NaN, '-'],
  ])('shows %p as %p', (value, text) => {
    expect(figure(value)).toBe(text);
  });
});
