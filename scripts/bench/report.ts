import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { format } from 'prettier';

import { ROOT } from '../harness/program.ts';
import { figure, formatTable, median } from './format-table.ts';

/** For runs that are thrown away, and for profiles. */
export const RESULTS_DIR = join(ROOT, 'bench-results');
const KEPT_FILE = join(ROOT, 'docs', 'benchmarks', 'rivals.json');

/** One case of one contender, run once; figures are per request or for the whole run. */
export interface Run {
  kase: string;
  contender: string;
  answered: number;
  errors: number;
  figures: Record<string, number>;
  /** The share of all cores taken by programs outside the benchmark, 0 to 1. */
  othersShare: number;
}

interface Spread {
  median: number;
  min: number;
  max: number;
}

/** A contender's figures in a case, over all rounds that count. */
interface Summary extends Omit<Run, 'figures' | 'othersShare'> {
  figures: Record<string, Spread>;
  rounds: number;
  /** Rounds that do not count, because the machine was busy with something else. */
  discarded: number;
}

export interface BenchResult {
  cases: { name: string; title: string }[];
  summaries: Summary[];
  rounds: number;
  seconds: number;
  /** Whether every request that Parley answered is in its ledger. */
  isBooked: boolean;
  /** Systems that could not be started, and why. */
  absent: Record<string, string>;
  /** Runs that failed. */
  failures: { kase: string; contender: string; round: number; why: string }[];
}

/** A round in which other programs took more than this does not count. */
const OTHERS_SHARE_MAX = 0.05;
const COLUMNS: readonly (readonly [title: string, figure: string])[] = [
  ['a second', 'perSecond'],
  ['p50 ms', 'p50Ms'],
  ['p99 ms', 'p99Ms'],
  ['first text added p50', 'firstTextAddedP50Ms'],
  ['first text added p99', 'firstTextAddedP99Ms'],
  ['CPU-ms', 'cpuMs'],
  ['MB', 'memoryMb'],
];
/** All others are compared with the first of these that takes part. */
const COMPARED_WITH = ['portkey', 'floor'];

/** If every round was disturbed, all of them count, and `discarded` is their number. */
export function summarise(runs: readonly Run[]): Summary {
  const [first] = runs;
  if (first === undefined) throw new Error('There is no run to summarise.');
  const quiet = runs.filter(({ othersShare }) => othersShare <= OTHERS_SHARE_MAX);
  const counted = quiet.length === 0 ? runs : quiet;
  const names = [...new Set(counted.flatMap(({ figures }) => Object.keys(figures)))];
  const figures = names.map((name) => {
    const values = counted.flatMap((run) => run.figures[name] ?? []);
    return [name, { median: median(values), min: Math.min(...values), max: Math.max(...values) }] as const;
  });
  return {
    kase: first.kase,
    contender: first.contender,
    answered: runs.reduce((sum, { answered }) => sum + answered, 0),
    errors: runs.reduce((sum, { errors }) => sum + errors, 0),
    figures: Object.fromEntries(figures),
    rounds: counted.length,
    discarded: runs.length - quiet.length,
  };
}

export function isFine({ isBooked, failures, summaries }: BenchResult): boolean {
  return isBooked && failures.length === 0 && summaries.every(({ errors }) => errors === 0);
}

export function renderReport(result: BenchResult): string {
  const { cases, summaries, rounds, seconds, isBooked, absent, failures } = result;
  const sections = cases.flatMap(({ name, title }) => {
    const rows = summaries.filter(({ kase }) => kase === name);
    return rows.length === 0 ? [] : ['', `### ${title}`, '', ...caseTable(rows), '', ...processLines(rows)];
  });
  const errors = summaries.reduce((sum, summary) => sum + summary.errors, 0);
  const disturbed = summaries.filter(({ discarded }) => discarded > 0).length;
  const verdict = (passed: boolean) => (passed ? 'PASS' : 'FAIL');
  const share = `${OTHERS_SHARE_MAX * 100} % CPU`;
  return [
    `\nMedians of ${rounds} rounds of ${seconds} s; CPU-ms per answer and MB are those of all processes of a contender,`,
    'stores included, until what it answered is booked.',
    ...sections,
    '',
    ...(disturbed === 0
      ? []
      : [`Warning: in ${disturbed} rows rounds were disturbed: others took more than ${share}.`]),
    ...Object.entries(absent).map(([name, why]) => `Absent: ${name}: ${why}`),
    ...failures.map(({ kase, contender, round, why }) => `FAIL  ${contender}, ${kase}, round ${round}: ${why}`),
    `${verdict(errors === 0)}  every request was answered${errors === 0 ? '' : `, but for ${errors}`}`,
    `${verdict(isBooked)}  every request that Parley answered is in its ledger`,
  ].join('\n');
}

function caseTable(rows: readonly Summary[]): string[] {
  const columns = COLUMNS.filter(([, name]) => rows.some(({ figures }) => name in figures));
  const rival = COMPARED_WITH.map((name) => rows.find(({ contender }) => contender === name)).find(Boolean);
  const ratio = ({ figures }: Summary, name: string) =>
    figure((figures[name]?.median ?? NaN) / (rival?.figures[name]?.median ?? NaN));
  const compared = rival === undefined || rows.length === 1 ? [] : [`speed / ${rival.contender}`, 'CPU'];
  return formatTable(
    ['', ...columns.map(([title]) => title), ...compared],
    rows.map((row) => [
      row.contender,
      ...columns.map(([, name]) => figure(row.figures[name]?.median)),
      ...(compared.length === 0 ? [] : [ratio(row, 'perSecond'), ratio(row, 'cpuMs')]),
    ]),
  );
}

/** The least and the most CPU time of a contender's rounds, and the part of each of its processes. */
function processLines(rows: readonly Summary[]): string[] {
  return rows.flatMap(({ contender, figures }) => {
    const names = Object.keys(figures).flatMap((name) => (name.startsWith('cpuMs ') ? name.slice(6) : []));
    const { cpuMs: all } = figures;
    if (names.length < 2 || all === undefined) return [];
    const parts = names.map((name) => {
      const [cpu, memory] = [figures[`cpuMs ${name}`]?.median, figures[`memoryMb ${name}`]?.median];
      return `${name} ${figure(cpu)} CPU-ms, ${figure(memory)} MB`;
    });
    return [`- ${contender}: ${figure(all.min)} to ${figure(all.max)} CPU-ms; ${parts.join('; ')}`];
  });
}

/** Shortens numbers, because people read the file too. Counts stay as they are. */
function shorten(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}

/** Writes the result as JSON. Returns the file's name. */
export async function saveResult(startedAt: Date, isKept: boolean, result: BenchResult): Promise<string> {
  const file = isKept ? KEPT_FILE : join(RESULTS_DIR, `${startedAt.toISOString().replaceAll(':', '')}.json`);
  await mkdir(join(file, '..'), { recursive: true });
  const git = promisify(execFile)('git', ['rev-parse', '--short', 'HEAD'], { cwd: ROOT });
  const run = {
    startedAt: startedAt.toISOString(),
    commit: await git.then(
      ({ stdout }) => stdout.trim(),
      () => 'unknown',
    ),
    nodeVersion: process.version,
    machine: `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown processor'})`,
  };
  // The style that `npm run check` demands of every file of the repository.
  const text = await format(JSON.stringify({ ...run, ...result }, shorten), { printWidth: 120, parser: 'json' });
  await writeFile(file, text);
  return file;
}
