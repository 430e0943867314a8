import { describe, expect, it } from '@jest/globals';

import { figure, formatTable, median } from '../../../../scripts/bench/format-table.ts';

describe('formatTable', () => {
  it('makes every column of the Markdown as wide as its longest cell', () => {
    expect(formatTable(['system', 'req/s'], [['floor', '1234567']])).toEqual([
      '| system |   req/s |',
      '| ------ | ------: |',
      '| floor  | 1234567 |',
    ]);
  });
});

describe('median', () => {
  it('is the mean of the middle two of an even number of values', () => {
    expect([median([3, 1, 2]), median([400, 500])]).toEqual([2, 450]);
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
