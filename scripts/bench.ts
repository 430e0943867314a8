/** `npm run bench`: compares Parley with the floor (scripts/bench/floor-api.ts), on its own stores and processes. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { runCharts } from './bench/charts/run-charts.ts';
import { costsOf } from './bench/cpu-profile.ts';
import type { Cost, CpuProfile } from './bench/cpu-profile.ts';
import { RESULTS_DIR } from './bench/history.ts';
import { parseBenchOptions, USAGE } from './bench/options.ts';
import type { BenchOptions } from './bench/options.ts';
import { runBatchBench } from './bench/run-batch-bench.ts';
import { runBench } from './bench/run-bench.ts';
import type { ProfileFile } from './bench/run-bench.ts';
import { runMicroBench } from './bench/run-micro-bench.ts';
import { runReconcileBench } from './bench/run-reconcile-bench.ts';
import { runRivals } from './bench/rivals/run-rivals.ts';
import { runStateful } from './bench/stateful/run-stateful.ts';
import { runUsageBench } from './bench/run-usage-bench.ts';
import { readArguments } from './harness/read-arguments.ts';
import { runSupervised } from './harness/run-supervised.ts';
import type { SupervisedTask } from './harness/run-supervised.ts';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

const PROFILE_LINES = 25;

async function main(): Promise<number> {
  const read = readArguments(USAGE, process.argv.slice(2), parseBenchOptions);
  if ('exitCode' in read) return read.exitCode;
  const { options } = read;
  const { profile } = options;
  let warmAtMicros = 0;
  const onWarm = () => {
    warmAtMicros = Number(process.hrtime.bigint() / 1_000n);
  };
  const profileFile: ProfileFile | undefined =
    profile === undefined ? undefined : { dir: RESULTS_DIR, name: `${profile}-${Date.now()}.cpuprofile`, onWarm };
  if (profileFile !== undefined) await mkdir(RESULTS_DIR, { recursive: true });
  const exitCode = await runSupervised('bench', print, (task) => runChosen(task, options, profileFile));
  if (profileFile !== undefined && exitCode === 0)
    await explainProfile(join(profileFile.dir, profileFile.name), warmAtMicros);
  return exitCode;
}

function runChosen(task: SupervisedTask, options: BenchOptions, profileFile?: ProfileFile): Promise<number> {
  switch (options.other) {
    case 'batch':
      return runBatchBench(task, options, print, profileFile);
    case 'reconcile':
      return runReconcileBench(task, options, print);
    case 'micro':
      return runMicroBench(task, options.rounds, print);
    case 'rivals':
      return withCharts(options.rivals, runRivals(task, options, print, profileFile));
    case 'stateful':
      return withCharts(options.stateful, runStateful(task, options.stateful, print));
    case 'charts':
      return runCharts(print);
    case 'usage':
      return runUsageBench(task, print);
    case undefined:
      return runBench(task, options, print, profileFile);
  }
}

/** Also draws a run that is kept. */
async function withCharts({ isKept }: { isKept: boolean }, run: Promise<number>): Promise<number> {
  const exitCode = await run;
  return isKept ? Math.max(exitCode, await runCharts(print)) : exitCode;
}

/** Explains the profile that the process wrote when it ended. */
async function explainProfile(file: string, fromMicros: number): Promise<void> {
  // Written by V8.
  const profile = JSON.parse(await readFile(file, 'utf8')) as CpuProfile;
  const { byFunction, byModule } = costsOf(profile, fromMicros, PROFILE_LINES);
  const lines = (costs: readonly Cost[]) =>
    costs.map(({ name, share }) => `  ${(share * 100).toFixed(1).padStart(5)} %  ${name}`);
  print(['', 'Self time by module:', ...lines(byModule), '', 'By function:', ...lines(byFunction)].join('\n'));
  print(`\nThe whole profile, for a viewer: ${file}`);
}

process.exitCode = await main();
