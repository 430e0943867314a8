/** `npm run bench`: compares Parley with the floor or with other gateways, on its own stores and processes. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { costsOf } from './bench/cpu-profile.ts';
import type { Cost, CpuProfile } from './bench/cpu-profile.ts';
import { parseBenchOptions, USAGE } from './bench/options.ts';
import { RESULTS_DIR } from './bench/report.ts';
import { runBench } from './bench/run-bench.ts';
import { readArguments } from './harness/read-arguments.ts';
import { runSupervised } from './harness/run-supervised.ts';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

const PROFILE_LINES = 25;

async function main(): Promise<number> {
  const read = readArguments(USAGE, process.argv.slice(2), parseBenchOptions);
  if ('exitCode' in read) return read.exitCode;
  const { options } = read;
  const { profile } = options;
  await mkdir(RESULTS_DIR, { recursive: true });
  const profileName = profile === undefined ? undefined : `${profile}-${Date.now()}.cpuprofile`;
  let warmAtMicros = 0;
  const exitCode = await runSupervised('bench', print, (task) =>
    runBench(task, options, print, {
      profileName,
      onWarm: () => {
        warmAtMicros = Number(process.hrtime.bigint() / 1_000n);
      },
    }),
  );
  if (profileName !== undefined && exitCode === 0) await explainProfile(join(RESULTS_DIR, profileName), warmAtMicros);
  return exitCode;
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
