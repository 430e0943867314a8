/** `npm run test:fault`: the fault experiments against the processes as a user starts them (docs/faults.md). */
import { EXPERIMENTS } from './experiments/index.ts';
import { parseFaultOptions, USAGE } from './options.ts';
import { runSuite } from './run-suite.ts';
import { readArguments } from '../../scripts/harness/read-arguments.ts';
import { runSupervised } from '../../scripts/harness/run-supervised.ts';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

async function main(): Promise<number> {
  const known = EXPERIMENTS.map(({ name }) => name);
  const read = readArguments(USAGE, process.argv.slice(2), (args) => parseFaultOptions(args, known));
  if ('exitCode' in read) return read.exitCode;
  const { names, rounds, ...durations } = read.options;
  const experiments = EXPERIMENTS.filter(({ name, isLong = false }) =>
    names.length === 0 ? !isLong : names.includes(name),
  );
  return runSupervised('fault', print, (task) => runSuite(task, { experiments, rounds, durations, print }));
}

process.exitCode = await main();
