/** `npm run bench`: compares Parley with the floor or with other gateways, on its own stores and processes. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { parseBenchOptions, USAGE } from './bench/options.ts';
import { RESULTS_DIR } from './bench/report.ts';
import { runBench } from './bench/run-bench.ts';
import { readArguments } from './harness/read-arguments.ts';
import { runSupervised } from './harness/run-supervised.ts';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

async function main(): Promise<number> {
  const read = readArguments(USAGE, process.argv.slice(2), parseBenchOptions);
  if ('exitCode' in read) return read.exitCode;
  const { options } = read;
  const { profile } = options;
  await mkdir(RESULTS_DIR, { recursive: true });
  const profileName = profile === undefined ? undefined : `${profile}-${Date.now()}.cpuprofile`;
  const exitCode = await runSupervised('bench', print, (task) => runBench(task, options, print, profileName));
  if (profileName !== undefined && exitCode === 0)
    print(`\nThe profile, for a viewer: ${join(RESULTS_DIR, profileName)}`);
  return exitCode;
}

process.exitCode = await main();
