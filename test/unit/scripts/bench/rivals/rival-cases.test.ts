import { describe, expect, it } from '@jest/globals';

import { RIVAL_CASES, TWO_WORKERS, takesPart } from '../../../../../scripts/bench/rivals/rival-cases.ts';
import { rivalsMarkdown } from '../../../../../scripts/bench/rivals/rivals-markdown.ts';

const caseOf = (name: string) => {
  const found = RIVAL_CASES.find((benchCase) => benchCase.name === name);
  if (found === undefined) throw new Error(`There is no case ${name}.`);
  return found;
};

const spread = (median: number) => ({ median, min: median, max: median });

describe('takesPart', () => {
  it('asks every contender but the second Parley, which has a case of its own', () => {
    expect(takesPart('mine', caseOf('live-100'))).toBe(true);
    expect(takesPart(TWO_WORKERS, caseOf('live-100'))).toBe(false);
    expect(takesPart(TWO_WORKERS, caseOf('workers-2'))).toBe(true);
  });

  it('asks nobody for a memory that they do not have', () => {
    expect(takesPart('floor', caseOf('history-50'))).toBe(false);
    expect(takesPart('portkey', caseOf('history-50'))).toBe(true);
  });
});

describe('rivalsMarkdown', () => {
  it('has a table a case, and names who took no part', () => {
    const summaries = ['portkey', 'parley'].map((contender, index) => ({
      ...{ kase: 'complete-1', contender, answered: 1, errors: 0, rounds: 1, discarded: 0 },
      figures: { perSecond: spread(200 - 100 * index), cpuMs: spread(1 + index) },
    }));
    const cases = [caseOf('complete-1'), caseOf('live-100')];
    const text = rivalsMarkdown({
      ...{ cases, summaries, rounds: 1, seconds: 3, isBooked: true, failures: [] },
      absent: { other: 'it could not be installed' },
    });

    expect(text).toContain('| parley | 100 | 2.00 | 0.50 | 2.00 |');
    expect(text).not.toContain('live streams');
    expect(text).toContain('- other took no part: it could not be installed');
  });
});
