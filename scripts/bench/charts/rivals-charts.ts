import type { RivalsResult } from '../rivals/rivals-report.ts';
import { drawBars } from './draw.ts';

/** A file of the history: the parts that charts use. */
export type KeptRivals = Pick<RivalsResult, 'cases' | 'summaries' | 'rounds' | 'seconds'> & { machine: string };

const rounded = (value: number) => Number(value.toPrecision(3));

interface ChartOf {
  file: string;
  title: string;
  figure: string;
  unit: string;
  isLogarithmic?: boolean;
}

const CHARTS: readonly ChartOf[] = [
  {
    file: 'throughput',
    title: 'Answers a second',
    figure: 'perSecond',
    unit: 'More is better; logarithmic scale',
    isLogarithmic: true,
  },
  { file: 'cpu', title: 'CPU time of an answer', figure: 'cpuMs', unit: 'Milliseconds, all processes; less is better' },
  {
    file: 'first-text',
    title: 'Time added to the first text, p50',
    figure: 'firstTextAddedP50Ms',
    unit: 'Milliseconds; less is better',
  },
  {
    file: 'first-text-p99',
    title: 'Time added to the first text, p99',
    figure: 'firstTextAddedP99Ms',
    unit: 'Milliseconds; less is better',
  },
  { file: 'memory', title: 'Memory', figure: 'memoryMb', unit: 'MB, all processes, stores included; less is better' },
];

/** One SVG per figure, by file name: groups are cases, bars are contenders. */
export function rivalsCharts({ cases, summaries, rounds, seconds, machine }: KeptRivals): Map<string, string> {
  const charts = new Map<string, string>();
  for (const { file, title, figure, unit, isLogarithmic = false } of CHARTS) {
    const measured = summaries.filter(({ figures }) => figure in figures);
    const shown = cases.filter(({ name }) => measured.some(({ kase }) => kase === name));
    if (shown.length === 0) continue;
    const contenders = [...new Set(measured.map(({ contender }) => contender))];
    const valueOf = (contender: string, name: string) => {
      const found = measured.find((one) => one.contender === contender && one.kase === name)?.figures[figure];
      return found === undefined ? null : rounded(found.median);
    };
    const svg = drawBars({
      title,
      isLogarithmic,
      categories: shown.map(({ title: name }) => name),
      subtitle: `${unit}. Medians of ${rounds} rounds of ${seconds} s, ${machine}.`,
      series: contenders.map((name) => ({ name, values: shown.map((benchCase) => valueOf(name, benchCase.name)) })),
    });
    charts.set(`${file}.svg`, svg);
  }
  return charts;
}
