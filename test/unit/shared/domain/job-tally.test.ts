import { describe, expect, it } from '@jest/globals';

import { addTo, bucketOf, countOf, emptyTally, percentileMs, sumTallies } from '../../../../shared/domain/job-tally.ts';

function countsOf(...durations: number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const duration of durations) addTo(counts, bucketOf(duration), 1);
  return counts;
}

describe('a percentile of counted durations', () => {
  it.each([1, 7, 40, 260, 999, 4_500, 59_000, 86_000_000])('is near the duration where all took %d ms', (ms) => {
    const counts = countsOf(...Array.from({ length: 100 }, () => ms));
    expect(percentileMs(counts, 50)).toBeGreaterThan(ms / 4);
    expect(percentileMs(counts, 99)).toBeLessThanOrEqual(ms * 2.5);
  });

  it('tells the few that took long from the many that did not', () => {
    const counts = countsOf(...Array.from({ length: 97 }, () => 3), 9_000, 9_000, 9_000);
    expect(percentileMs(counts, 50)).toBeLessThanOrEqual(5);
    expect(percentileMs(counts, 99)).toBeGreaterThan(5_000);
    expect(percentileMs(counts, 100)).toBe(10_000);
  });

  it('counts what takes longer than the last bound in the last bucket', () => {
    expect(percentileMs(countsOf(10 ** 12), 100)).toBe(86_400_000);
  });

  it('is zero where nothing was counted', () => {
    expect(percentileMs(new Map(), 95)).toBe(0);
  });
});

it('the sum of tallies has what each of them has', () => {
  const one = { ...emptyTally(), completed: 2, waited: countsOf(1, 400), ran: countsOf(1) };
  const other = { ...emptyTally(), completed: 1, failed: 3, waited: countsOf(400) };
  const sum = sumTallies([one, other]);
  expect(sum).toMatchObject({ completed: 3, failed: 3 });
  expect(sum.waited.get(bucketOf(400))).toBe(2);
  expect([countOf(sum.waited), countOf(sum.ran)]).toEqual([3, 1]);
});
