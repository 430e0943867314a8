import { figure } from '../format-table.ts';
import { markdownTable } from '../markdown.ts';
import { COLUMNS, RIVAL } from './rivals-report.ts';
import type { RivalsResult } from './rivals-report.ts';
import type { RivalSummary } from './summary.ts';

/** Tables to paste: one per case, with medians only; the spread is in the JSON. */
export function rivalsMarkdown({ cases, summaries, rounds, seconds, absent }: RivalsResult): string {
  return [
    `Medians of ${rounds} rounds of ${seconds} s. CPU-ms and MB are those of all processes of a contender, stores included.`,
    '',
    ...cases.flatMap(({ name, title }) => {
      const rows = summaries.filter(({ kase }) => kase === name);
      return rows.length === 0 ? [] : [`### ${title}`, '', ...caseTable(rows), ''];
    }),
    ...Object.entries(absent).map(([name, why]) => `- ${name} took no part: ${why}`),
  ].join('\n');
}

function caseTable(rows: readonly RivalSummary[]): string[] {
  const columns = COLUMNS.filter(([, name]) => rows.some(({ figures }) => name in figures));
  const rival = rows.find(({ contender }) => contender === RIVAL);
  const ratio = ({ figures }: RivalSummary, name: string) =>
    figure((figures[name]?.median ?? NaN) / (rival?.figures[name]?.median ?? NaN));
  const ratios = rival === undefined ? [] : [`speed / ${RIVAL}`, `CPU / ${RIVAL}`];
  return markdownTable(
    ['', ...columns.map(([title]) => title), ...ratios],
    rows.map((row) => [
      row.contender,
      ...columns.map(([, name]) => figure(row.figures[name]?.median)),
      ...(rival === undefined ? [] : [ratio(row, 'perSecond'), ratio(row, 'cpuMs')]),
    ]),
  );
}
