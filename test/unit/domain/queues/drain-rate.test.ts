import { expect, it } from '@jest/globals';

import { drainRatePerSecond } from '../../../../shared/domain/queues/drain-rate.ts';

const NOW = 1_000_000;
/** Ends `everyMs` apart, the last of them at `NOW`. */
const ends = (count: number, everyMs: number) => Array.from({ length: count }, (_, index) => NOW - index * everyMs);

it('is zero for a lane that ended nothing in the last minute', () => {
  expect(drainRatePerSecond([], NOW)).toBe(0);
  expect(drainRatePerSecond([NOW - 61_000], NOW)).toBe(0);
});

it('counts over the minute where older ends are known', () => {
  expect(drainRatePerSecond(ends(100, 1_000), NOW)).toBeCloseTo(1, 1);
});

it('counts over the span of the known ends where there may have been more', () => {
  expect(drainRatePerSecond(ends(200, 10), NOW)).toBeCloseTo(100, -1);
});

it('takes a burst for a second of work, not for an infinite rate', () => {
  expect(drainRatePerSecond(ends(5, 0), NOW)).toBe(5);
});
