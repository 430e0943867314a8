import { figure, formatTable } from '../format-table.ts';
import type { RivalCase } from './rival-cases.ts';
import { OTHERS_SHARE_MAX } from './summary.ts';
import type { RivalSummary } from './summary.ts';

export interface RivalsResult {
  cases: readonly Pick<RivalCase, 'name' | 'title'>[];
  summaries: readonly RivalSummary[];
  rounds: number;
  seconds: number;
  /** Whether the ledger has every request that Parley answered. */
  isBooked: boolean;
  /** Rivals that could not be started, and why. */
  absent: Record<string, string>;
  /** Runs that failed. */
  failures: { kase: string; contender: string; round: number; why: string }[];
}

export const COLUMNS: readonly (readonly [title: string, figure: string])[] = [
  ['a second', 'perSecond'],
  ['p50 ms', 'p50Ms'],
  ['p99 ms', 'p99Ms'],
  ['first text added p50', 'firstTextAddedP50Ms'],
  ['first text added p99', 'firstTextAddedP99Ms'],
  ['resumed p50 ms', 'resumedP50Ms'],
  ['resumed p99 ms', 'resumedP99Ms'],
  ['CPU-ms', 'cpuMs'],
  ['MB', 'memoryMb'],
];
/** All others are compared with this one, if it takes part. */
export const RIVAL = 'portkey';

export function renderRivals(result: RivalsResult): string {
  const { cases, summaries, rounds, seconds, isBooked, absent, failures } = result;
  const sections = cases.map((benchCase) => {
    const rows = summaries.filter((summary) => summary.kase === benchCase.name);
    return [`${benchCase.title} (${benchCase.name})`, '', ...caseTable(rows), ...processLines(rows)].join('\n');
  });
  const errors = summaries.reduce((sum, summary) => sum + summary.errors, 0);
  const disturbed = summaries.filter(({ discarded }) => discarded > 0).length;
  const verdict = (passed: boolean) => (passed ? 'PASS' : 'FAIL');
  return [
    `\nMedians of ${rounds} rounds of ${seconds} s, in brackets the least and the most; CPU-ms and memory are those of all`,
    'processes of a contender, stores included, until what it answered is booked.',
    '',
    sections.join('\n\n'),
    '',
    ...(disturbed === 0
      ? []
      : [
          `Warning: in ${disturbed} rows rounds were disturbed: others took more than ${OTHERS_SHARE_MAX * 100} % CPU.`,
        ]),
    ...Object.entries(absent).map(([name, why]) => `Absent: ${name}: ${why}`),
    ...failures.map(({ kase, contender, round, why }) => `FAIL  ${contender}, ${kase}, round ${round}: ${why}`),
    `${verdict(errors === 0)}  every request was answered${errors === 0 ? '' : `, but for ${errors}`}`,
    `${verdict(isBooked)}  every request that Parley answered is in its ledger`,
  ].join('\n');
}

function caseTable(rows: readonly RivalSummary[]): string[] {
  const columns = COLUMNS.filter(([, name]) => rows.some(({ figures }) => name in figures));
  const rival = rows.find(({ contender }) => contender === RIVAL);
  const hasRatio = rival !== undefined && rows.length > 1;
  const ratio = ({ figures }: RivalSummary, name: string) =>
    `x${figure((figures[name]?.median ?? NaN) / (rival?.figures[name]?.median ?? NaN))}`;
  const header = ['contender', ...columns.map(([title]) => title), ...(hasRatio ? ['speed', 'CPU'] : []), 'errors'];
  return formatTable(
    header,
    rows.map((row) => [
      row.contender,
      ...columns.map(([, name]) => spreadText(row, name)),
      ...(hasRatio ? [ratio(row, 'perSecond'), ratio(row, 'cpuMs')] : []),
      String(row.errors),
    ]),
    [0],
  );
}

function spreadText({ figures }: RivalSummary, name: string): string {
  const spread = figures[name];
  if (spread === undefined) return '-';
  return `${figure(spread.median)} (${figure(spread.min)}-${figure(spread.max)})`;
}

function processLines(rows: readonly RivalSummary[]): string[] {
  return rows.flatMap(({ contender, figures }) => {
    const names = Object.keys(figures).flatMap((name) => (name.startsWith('cpuMs ') ? name.slice(6) : []));
    if (names.length < 2) return [];
    const parts = names.map((name) => {
      const [cpu, memory] = [figures[`cpuMs ${name}`]?.median, figures[`memoryMb ${name}`]?.median];
      return `${name} ${figure(cpu)} CPU-ms, ${figure(memory)} MB`;
    });
    return [`  ${contender}: ${parts.join('; ')}`];
  });
}
