import { describe, expect, it } from '@jest/globals';

import { compareBookings } from '../../../../../scripts/bench/stateful/measures/balance-drift.ts';
import { worstMinute } from '../../../../../scripts/bench/stateful/measures/exact-limits.ts';
import { differenceOf, numberedWords } from '../../../../../scripts/bench/stateful/measures/resume.ts';

const acceptedAt = (seconds: number) => ({ sentAt: seconds * 1_000, headAt: seconds * 1_000 + 100 });

describe('worstMinute', () => {
  it('counts across the turn of a fixed window', () => {
    const accepted = [acceptedAt(0), acceptedAt(59), acceptedAt(61), acceptedAt(62)];

    expect(worstMinute(accepted)).toBe(3);
  });

  it('counts nothing that may have been accepted outside of the minute', () => {
    const late = { sentAt: 59_000, headAt: 61_000 };

    expect(worstMinute([acceptedAt(0), late])).toBe(1);
  });
});

describe('differenceOf', () => {
  const text = numberedWords(5);

  it('finds none in the same text', () => {
    expect(differenceOf(text, text)).toEqual({ missingBytes: 0, repeatedBytes: 0 });
  });

  it('tells what is missing from what is repeated', () => {
    const read = text.replace('w10001 ', '').replace('w10003', 'w10003 w10003');

    expect(differenceOf(text, read)).toEqual({ missingBytes: 7, repeatedBytes: 7 });
  });
});

describe('compareBookings', () => {
  it('finds answers without a booking and those with two', () => {
    expect(compareBookings(['a', 'b', 'c'], ['b', 'c', 'c', 'unseen'])).toEqual({ unbilled: 1, twice: 1 });
  });
});
