/** `npm run test:fault`: the fault experiments against the processes as a user starts them (docs/faults.md). */
import { parseFaultOptions, USAGE } from './options.ts';
import { readArguments } from '../../scripts/harness/read-arguments.ts';
import { runSupervised } from '../../scripts/harness/run-supervised.ts';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

async function main(): Promise<number> {
  const given = readArguments(USAGE, process.argv.slice(2), (args) => args);
  if ('exitCode' in given) return given.exitCode;
  // They load the whole product, which a usage has no need of.
  const [{ EXPERIMENTS }, { runSuite }] = await Promise.all([
    import('./experiments/index.ts'),
    import('./run-suite.ts'),
  ]);
  const known = EXPERIMENTS.map(({ name }) => name);
  const read = readArguments(USAGE, given.options, (args) => parseFaultOptions(args, known));
  if ('exitCode' in read) return read.exitCode;
  const { names, rounds, ...durations } = read.options;
  const experiments = EXPERIMENTS.filter(({ name, isLong = false }) =>
    names.length === 0 ? !isLong : names.includes(name),
  );
  return runSupervised('fault', print, (task) => runSuite(task, { experiments, rounds, durations, print }));
}

process.exitCode = await main();
