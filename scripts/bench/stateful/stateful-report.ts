import { markdownTable } from '../markdown.ts';
import type { Size } from './lab.ts';
import type { Measure, Outcome, SystemResult } from './measure.ts';

type MeasureName = Pick<Measure, 'name' | 'title'>;

/** One table per measure, with systems as columns: Markdown to paste into docs/benchmarks/stateful.md. */
export function renderStateful(measures: readonly MeasureName[], results: readonly SystemResult[], size: Size): string {
  const warning = size === 'smoke' ? ['A smoke test: it shows that the measures work; its figures are none.', ''] : [];
  return [
    ...warning,
    ...overview(measures, results),
    '',
    ...measures.flatMap((measure) => section(measure, results)),
    ...results.flatMap(({ name, version, notes }) => notes.map((note) => `- ${name} (${version}): ${note}`)),
  ].join('\n');
}

/** The word that charts use, too. */
export function inOneWord(outcome: Outcome | undefined): string {
  if (outcome === undefined) return '–';
  if (outcome.kind !== 'measured') return outcome.kind;
  if (outcome.verdicts.length === 0) return 'measured';
  return outcome.verdicts.every(({ isKept }) => isKept) ? 'kept' : 'broken';
}

function overview(measures: readonly MeasureName[], results: readonly SystemResult[]): string[] {
  return markdownTable(
    ['Measure', ...results.map(({ name }) => name)],
    measures.map(({ name, title }) => [title, ...results.map(({ outcomes }) => inOneWord(outcomes[name]))]),
  );
}

function section({ name, title }: MeasureName, results: readonly SystemResult[]): string[] {
  const of = ({ outcomes }: SystemResult) => outcomes[name];
  const measured = results.flatMap((result) => {
    const outcome = of(result);
    return outcome?.kind === 'measured' ? [{ system: result.name, outcome }] : [];
  });
  const figures = [...new Set(measured.flatMap(({ outcome }) => Object.keys(outcome.figures)))];
  const rows = figures.map((figure) => [
    figure,
    ...measured.map(({ outcome }) => String(outcome.figures[figure] ?? '–')),
  ]);
  const others = results.flatMap((result) => {
    const outcome = of(result);
    return outcome === undefined || outcome.kind === 'measured'
      ? []
      : [`- ${result.name}: ${outcome.kind}. ${outcome.why}`];
  });
  const broken = measured.flatMap(({ system, outcome }) =>
    outcome.verdicts
      .filter(({ isKept }) => !isKept)
      .map(({ promise, seen }) => `- ${system}: broken: ${promise} (${seen})`),
  );
  return [
    `### ${title}`,
    '',
    ...(measured.length === 0 ? [] : [...markdownTable(['', ...measured.map(({ system }) => system)], rows), '']),
    ...broken,
    ...others,
    ...(broken.length + others.length > 0 ? [''] : []),
  ];
}
