import { describe, expect, it } from '@jest/globals';

import { fillPage } from '../../../../../scripts/bench/charts/run-charts.ts';
import { rivalsCharts } from '../../../../../scripts/bench/charts/rivals-charts.ts';
import type { KeptRivals } from '../../../../../scripts/bench/charts/rivals-charts.ts';
import { statefulCharts } from '../../../../../scripts/bench/charts/stateful-charts.ts';
import type { KeptStateful } from '../../../../../scripts/bench/charts/stateful-charts.ts';

const summaryOf = (contender: string, perSecond: number): KeptRivals['summaries'][number] => ({
  ...{ kase: 'complete-32', contender, answered: 10, errors: 0, rounds: 3, discarded: 0 },
  figures: { perSecond: { median: perSecond, min: 1, max: 2 } },
});

const RIVALS: KeptRivals = {
  cases: [
    { name: 'complete-32', title: 'Complete answers' },
    { name: 'live-100', title: 'Live streams' },
  ],
  summaries: [summaryOf('portkey', 476.4), summaryOf('parley', 1_234)],
  ...{ rounds: 3, seconds: 6, machine: '2 cores' },
};

const STATEFUL: KeptStateful = {
  measures: [
    { name: 'limits', title: 'Exact limits' },
    { name: 'recovery', title: 'Recovery' },
  ],
  systems: [
    {
      ...{ name: 'parley', version: 'this commit', notes: [] },
      outcomes: {
        limits: { kind: 'measured', figures: {}, verdicts: [{ promise: 'exact', isKept: true, seen: '' }] },
        recovery: {
          kind: 'measured',
          figures: { 'redis: seconds': 2.5, 'redis: requests that failed': 7 },
          verdicts: [],
        },
      },
    },
    {
      ...{ name: 'other', version: '1.2.3', notes: [] },
      outcomes: {
        limits: { kind: 'not supported', why: 'it has none' },
        recovery: { kind: 'not tried', why: 'no time' },
      },
    },
  ],
  machine: '2 cores',
};

const MARKS = [
  '<!-- Written by npm run bench -- charts: change nothing below. -->',
  '<!-- Change nothing above. -->',
] as const;

describe('fillPage', () => {
  const run = { startedAt: '2026-11-22T08:00:00.000Z', commit: 'abc1234', nodeVersion: 'v24.0.0', machine: '2 cores' };
  const filling = { run, charts: ['first-text.svg'], tables: '| a |\n' };

  it('puts the latest run in the place of the last, and leaves the rest', () => {
    const once = fillPage(`before\n\n${MARKS.join('\nold\n')}\n\nafter\n`, filling);

    expect(once).toBe(
      [
        ...['before', MARKS[0], 'Measured on 2026-11-22: commit abc1234, Node.js v24.0.0, 2 cores.'],
        ...['![first text](first-text.svg)', '| a |', MARKS[1], 'after\n'],
      ].join('\n\n'),
    );
    expect(fillPage(once, filling)).toBe(once);
  });

  it('says which lines a page without them needs', () => {
    expect(() => fillPage('a page', filling)).toThrow('The page needs the lines');
  });
});

describe('charts', () => {
  it('are the same bytes for the same figures, whatever was drawn before', () => {
    const first = rivalsCharts(RIVALS).get('throughput.svg');
    statefulCharts(STATEFUL);

    expect(rivalsCharts(RIVALS).get('throughput.svg')).toBe(first);
  });

  it('draw the figures that were measured, and the cases that have one', () => {
    const charts = rivalsCharts(RIVALS);

    expect([...charts.keys()]).toEqual(['throughput.svg']);
    expect(charts.get('throughput.svg')).toMatch(/>476</);
    expect(charts.get('throughput.svg')).toContain('Complete answers');
    expect(charts.get('throughput.svg')).not.toContain('Live streams');
  });

  it('tell what a system does not have from what was not tried', () => {
    const charts = statefulCharts(STATEFUL);

    expect(charts.get('stateful.svg')).toMatch(/>kept<[\s\S]*>not supported<[\s\S]*>not tried</);
    expect(charts.get('recovery.svg')).toContain('>2.5<');
  });
});
