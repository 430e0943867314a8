import { describe, expect, it } from '@jest/globals';

import { renderReport, summarise } from '../../../../scripts/bench/report.ts';
import type { Run } from '../../../../scripts/bench/report.ts';

const runOf = (perSecond: number, othersShare = 0): Run => ({
  ...{ kase: 'complete-32', contender: 'parley', answered: 100, errors: 1, figures: { perSecond }, othersShare },
});

describe('summarise', () => {
  it('has the median of each figure, with the least and the most', () => {
    const summary = summarise([runOf(500), runOf(10), runOf(520)]);

    expect(summary).toMatchObject({ answered: 300, errors: 3, rounds: 3, discarded: 0 });
    expect(summary.figures).toEqual({ perSecond: { median: 500, min: 10, max: 520 } });
  });

  it('leaves out rounds in which other programs were busy', () => {
    const summary = summarise([runOf(500), runOf(10, 0.2)]);

    expect(summary).toMatchObject({ rounds: 1, discarded: 1, figures: { perSecond: { min: 500 } } });
  });

  it('takes all of them, and says so, where there is no other', () => {
    expect(summarise([runOf(500, 0.3), runOf(10, 0.2)])).toMatchObject({ rounds: 2, discarded: 2 });
  });
});

describe('renderReport', () => {
  it('has a table a case, compares with Portkey, and names who took no part', () => {
    const runs = ['portkey', 'floor', 'parley'].map((contender, index) => ({
      ...runOf(200 - 50 * index),
      ...{ contender, figures: { perSecond: 200 - 50 * index, cpuMs: 1 + index } },
    }));
    const text = renderReport({
      cases: ['complete-32', 'live-100'].map((name) => ({ name, title: name })),
      summaries: runs.map((run) => summarise([run])),
      ...{ rounds: 1, seconds: 3, isBooked: true, failures: [] },
      absent: { other: 'it could not be installed' },
    });

    expect(text).toMatch(/^\| parley +\| +100 \| +3.00 \| +0.50 \| +3.00 \|$/m);
    expect(text).not.toContain('### live-100');
    expect(text).toContain('Absent: other: it could not be installed');
    expect(text).toContain('FAIL  every request was answered, but for 3');
  });
});
