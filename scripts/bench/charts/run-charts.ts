import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { HISTORY_DIR } from '../history.ts';
import type { Kind } from '../history.ts';
import { rivalsCharts } from './rivals-charts.ts';
import type { KeptRivals } from './rivals-charts.ts';
import { statefulCharts } from './stateful-charts.ts';
import type { KeptStateful } from './stateful-charts.ts';

/** Draws the latest kept run of each benchmark into docs/benchmarks. Returns the exit code. */
export async function runCharts(print: (line: string) => void, dir = HISTORY_DIR): Promise<number> {
  await mkdir(dir, { recursive: true });
  // Written by saveResult.
  const rivals = (await latest(dir, 'rivals')) as KeptRivals | undefined;
  const stateful = (await latest(dir, 'stateful')) as KeptStateful | undefined;
  const charts = [
    ...(rivals === undefined ? [] : rivalsCharts(rivals)),
    ...(stateful === undefined ? [] : statefulCharts(stateful)),
  ];
  for (const [file, svg] of charts) {
    await writeFile(join(dir, file), svg);
    print(`Drawn: ${join(dir, file)}`);
  }
  if (charts.length > 0) return 0;
  print('There is no kept run to draw: run a benchmark with --keep first.');
  return 1;
}

/** The names end in day and time, so the last one is the latest. */
async function latest(dir: string, kind: Kind): Promise<unknown> {
  const names = (await readdir(dir)).filter((name) => name.startsWith(`${kind}-`) && name.endsWith('.json'));
  const last = names.toSorted().at(-1);
  return last === undefined ? undefined : JSON.parse(await readFile(join(dir, last), 'utf8'));
}
