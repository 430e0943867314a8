import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { HISTORY_DIR } from '../history.ts';
import type { Kind, KeptRun } from '../history.ts';
import { rivalsCharts } from './rivals-charts.ts';
import type { KeptRivals } from './rivals-charts.ts';
import { statefulCharts } from './stateful-charts.ts';
import type { KeptStateful } from './stateful-charts.ts';

/** Each benchmark has a page next to its runs. saveResult wrote the runs, so their kind implies their shape. */
const DRAW: Record<Kind, (run: unknown) => Map<string, string>> = {
  rivals: (run) => rivalsCharts(run as KeptRivals),
  stateful: (run) => statefulCharts(run as KeptStateful),
};
const KINDS = ['rivals', 'stateful'] as const;

/** Draws the latest kept run of each benchmark and puts it into its page. Returns the exit code. */
export async function runCharts(print: (line: string) => void, dir = HISTORY_DIR): Promise<number> {
  let drawn = 0;
  for (const kind of KINDS) {
    const name = await latest(dir, kind);
    if (name === undefined) continue;
    const run = JSON.parse(await readFile(join(dir, `${name}.json`), 'utf8')) as KeptRun;
    const charts = DRAW[kind](run);
    for (const [file, svg] of charts) await writeFile(join(dir, file), svg);
    const page = join(dir, `${kind}.md`);
    const tables = await readFile(join(dir, `${name}.md`), 'utf8');
    await writeFile(page, fillPage(await readFile(page, 'utf8'), { run, charts: [...charts.keys()], tables }));
    print(`${name}: ${[...charts.keys()].join(', ')} and ${page}`);
    drawn += charts.size;
  }
  if (drawn > 0) return 0;
  print('There is no kept run to draw: run a benchmark with --keep first.');
  return 1;
}

/** Names end with day and time, so the last one is the latest. */
async function latest(dir: string, kind: Kind): Promise<string | undefined> {
  const names = (await readdir(dir)).filter((name) => name.startsWith(`${kind}-`) && name.endsWith('.json'));
  return names.toSorted().at(-1)?.slice(0, -'.json'.length);
}

const BEGIN = '<!-- Written by npm run bench -- charts: change nothing below. -->';
const END = '<!-- Change nothing above. -->';

interface Filling {
  run: KeptRun;
  /** Files in the page's folder. */
  charts: readonly string[];
  /** Markdown. */
  tables: string;
}

/** Puts a run between the marks of its page and keeps the rest. Throws if there are no marks. */
export function fillPage(page: string, { run, charts, tables }: Filling): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`The page needs the lines "${BEGIN}" and "${END}".`);
  const { startedAt, commit, nodeVersion, machine } = run;
  const parts = [
    `Measured on ${startedAt.slice(0, 10)}: commit ${commit}, Node.js ${nodeVersion}, ${machine}.`,
    charts.map((file) => `![${file.replace('.svg', '').replaceAll('-', ' ')}](${file})`).join('\n\n'),
    tables.trim(),
  ];
  return `${page.slice(0, begin)}${BEGIN}\n\n${parts.join('\n\n')}\n\n${page.slice(end)}`;
}
