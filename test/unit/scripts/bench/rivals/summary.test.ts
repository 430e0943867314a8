import { describe, expect, it } from '@jest/globals';

import { summariseRival } from '../../../../../scripts/bench/rivals/summary.ts';
import type { RivalRun } from '../../../../../scripts/bench/rivals/summary.ts';

const runOf = (perSecond: number, othersShare = 0): RivalRun => ({
  ...{ kase: 'complete-32', contender: 'parley', answered: 100, errors: 1, figures: { perSecond }, othersShare },
});

describe('summariseRival', () => {
  it('has the median of each figure, with the least and the most', () => {
    const summary = summariseRival([runOf(500), runOf(10), runOf(520)]);

    expect(summary).toMatchObject({ answered: 300, errors: 3, rounds: 3, discarded: 0 });
    expect(summary.figures).toEqual({ perSecond: { median: 500, min: 10, max: 520 } });
  });

  it('leaves out rounds in which other programs were busy', () => {
    const summary = summariseRival([runOf(500), runOf(10, 0.2)]);

    expect(summary).toMatchObject({ rounds: 1, discarded: 1, figures: { perSecond: { min: 500 } } });
  });

  it('takes all of them, and says so, where there is no other', () => {
    expect(summariseRival([runOf(500, 0.3), runOf(10, 0.2)])).toMatchObject({ rounds: 2, discarded: 2 });
  });
});
