import type { Measure, SystemResult } from '../stateful/measure.ts';
import { inOneWord } from '../stateful/stateful-report.ts';
import { drawBars, drawGrid } from './draw.ts';

/** A file of the history: the parts that charts use. */
export interface KeptStateful {
  measures: Pick<Measure, 'name' | 'title'>[];
  systems: SystemResult[];
  machine: string;
}

const COLOURS = {
  kept: '#b7e4c7',
  broken: '#f5b5ad',
  measured: '#cfe2ff',
  'not supported': '#eceff2',
  'not tried': '#fff1c9',
  failed: '#f5b5ad',
  '–': '#ffffff',
};
const SECONDS = ': seconds';

/** Which promises each system keeps, and how soon it answers again. */
export function statefulCharts({ measures, systems, machine }: KeptStateful): Map<string, string> {
  const charts = new Map<string, string>();
  const grid = drawGrid({
    title: 'What the systems remember',
    subtitle: `kept: no promise of the measure was broken. measured: figures without a limit. ${machine}.`,
    columns: systems.map(({ name, version }) => (/^\d/.test(version) ? `${name} ${version}` : name)),
    rows: measures.map(({ name, title }) => ({
      name: title,
      cells: systems.map(({ outcomes }) => inOneWord(outcomes[name])),
    })),
    colours: COLOURS,
  });
  charts.set('stateful.svg', grid);
  const recovery = recoveryOf(systems);
  if (recovery !== undefined) charts.set('recovery.svg', recovery);
  return charts;
}

function recoveryOf(systems: readonly SystemResult[]): string | undefined {
  const measured = systems.flatMap(({ name, outcomes: { recovery } }) =>
    recovery?.kind === 'measured' ? [{ name, figures: recovery.figures }] : [],
  );
  const parts = [...new Set(measured.flatMap(({ figures }) => Object.keys(figures)))].filter((key) =>
    key.endsWith(SECONDS),
  );
  if (parts.length === 0) return undefined;
  return drawBars({
    title: 'From kill -9 to the next answer',
    subtitle: 'Seconds, on a logarithmic scale; started again at once; less is better.',
    categories: parts.map((part) => part.slice(0, -SECONDS.length)),
    series: measured.map(({ name, figures }) => ({
      name,
      values: parts.map((part) => (typeof figures[part] === 'number' ? figures[part] : null)),
    })),
    isLogarithmic: true,
  });
}
