import { describe, expect, it } from '@jest/globals';

import { ATTEMPTS_MAX, isGivenUp, nextAttemptAt } from '../../../../workers/webhooks/deliver.ts';

const NOW = 1_800_000_000_000;
const HOUR = 3_600_000;

describe('the next attempt', () => {
  it('comes 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h after the one before, and then no more', () => {
    const delays = Array.from({ length: 8 }, (_, index) => nextAttemptAt(index + 1, NOW, 0)).map((at) =>
      at === undefined ? undefined : (at - NOW) / 1000,
    );

    expect(delays).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 36_000, undefined]);
    expect(ATTEMPTS_MAX).toBe(8);
  });

  it('is later by chance, by a tenth at most and never earlier', () => {
    expect(nextAttemptAt(3, NOW, 0.5)).toBe(NOW + 1_890_000);
    expect(nextAttemptAt(3, NOW, 0.999_999)).toBeLessThanOrEqual(NOW + 1_980_000);
  });
});

describe('a receiver is given up', () => {
  it.each([
    ['after five days', 120 * HOUR, 8, true],
    ['not a moment before', 120 * HOUR - 1, 100, false],
    ['not for a few failures far apart', 200 * HOUR, 7, false],
  ])('a receiver is given up: %s', (_when, forMs, failures, expected) => {
    expect(isGivenUp({ failingSince: NOW - forMs, failures }, NOW)).toBe(expected);
  });
});
