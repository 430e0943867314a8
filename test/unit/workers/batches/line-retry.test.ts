import { describe, expect, it } from '@jest/globals';

import type { LineRetry } from '../../../../shared/mongo/batches/batch-lines.ts';
import { answeredAt, isDue, nextRetry } from '../../../../workers/batches/line-state.ts';

const NOW = 1_700_000_000_000;

/** What becomes of a line whose every try fails, until it is given up or has been tried so often. */
function triesOf(isOwnFault: (number: number) => boolean, most = 100): LineRetry[] {
  const tries: LineRetry[] = [];
  for (let number = 1; number <= most; number += 1) {
    const next = nextRetry(tries.at(-1), { isOwnFault: isOwnFault(number), now: NOW, random: 0.5 });
    if (next === undefined) break;
    tries.push(next);
  }
  return tries;
}

describe('the tries of a line', () => {
  it('end with the fifth of its own however many others came between', () => {
    expect(triesOf((number) => number % 3 === 0)).toHaveLength(14);
  });

  it('have pauses that double from half a second to a minute', () => {
    const pauses = triesOf(() => false, 10).map(({ dueAt }) => dueAt - NOW);
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  it('are not due at one time for all lines', () => {
    const dueAt = (random: number) => nextRetry(undefined, { isOwnFault: false, now: NOW, random })?.dueAt;
    expect([dueAt(0), dueAt(1)]).toEqual([NOW + 375, NOW + 625]);
  });
});

describe('the next try of a line', () => {
  it('is due when its pause is over, and where the clock was put back meanwhile', () => {
    const next = nextRetry(triesOf(() => false).at(-1), { isOwnFault: false, now: NOW, random: 1 });
    const isDueAt = (now: number) => next !== undefined && isDue(next, now);

    expect([NOW, NOW + 74_999].map(isDueAt)).toEqual([false, false]);
    expect([NOW + 75_000, NOW - 3_600_000].map(isDueAt)).toEqual([true, true]);
  });
});

describe('the call that a provider answered', () => {
  const attempt = (startedAt: number, outcome: string) => ({
    provider: 'one',
    model: 'm',
    startedAt,
    endedAt: startedAt + 1,
    outcome,
  });

  it('is the latest one that succeeded', () => {
    const attempts = [attempt(1, 'ok'), attempt(5, 'ok'), attempt(9, 'status_503')];
    expect(answeredAt({ attempts })).toBe(5);
  });

  it('is none where all failed, or nothing was asked', () => {
    expect(answeredAt({ attempts: [attempt(9, 'breaker_open')] })).toBeUndefined();
    expect(answeredAt(undefined)).toBeUndefined();
  });
});
