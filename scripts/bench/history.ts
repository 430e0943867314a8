import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { format } from 'prettier';

import { ROOT } from '../harness/program.ts';

/** For runs that are thrown away. */
export const RESULTS_DIR = join(ROOT, 'bench-results');
/** For runs that are kept with the code. */
export const HISTORY_DIR = join(ROOT, 'docs', 'benchmarks');

/** The benchmarks whose results are kept. */
export type Kind = 'rivals' | 'stateful';

/** What every file of the history contains besides its result. */
export interface KeptRun {
  startedAt: string;
  commit: string;
  nodeVersion: string;
  machine: string;
}

/** The style that `npm run check` demands of every file of the repository. */
const STYLE = { printWidth: 120 };

/** Shortens numbers, because people read these files too. Counts stay as they are. */
function shorten(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}

/** Writes two files named after the run's time: the result, and tables to paste. Returns the first one's name. */
export async function saveResult(
  { kind, startedAt, isKept }: { kind: Kind; startedAt: Date; isKept: boolean },
  result: object,
  markdown: string,
): Promise<string> {
  const dir = isKept ? HISTORY_DIR : RESULTS_DIR;
  await mkdir(dir, { recursive: true });
  const file = join(dir, `${kind}-${startedAt.toISOString().slice(0, 19).replaceAll(':', '')}`);
  const run: KeptRun = {
    startedAt: startedAt.toISOString(),
    commit: await commitOfThis(),
    nodeVersion: process.version,
    machine: `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown processor'})`,
  };
  await writeFile(
    `${file}.json`,
    await format(JSON.stringify({ ...run, ...result }, shorten), { ...STYLE, parser: 'json' }),
  );
  await writeFile(`${file}.md`, await format(markdown, { ...STYLE, parser: 'markdown' }));
  return `${file}.json`;
}

async function commitOfThis(): Promise<string> {
  const git = promisify(execFile)('git', ['rev-parse', '--short', 'HEAD'], { cwd: ROOT });
  return git.then(
    ({ stdout }) => stdout.trim(),
    () => 'unknown',
  );
}
