/** `npm run test:fault`: the fault experiments against the processes as a user starts them (docs/faults.md). */
import { EXPERIMENTS } from './experiments/index.ts';
import { parseFaultOptions, USAGE } from './options.ts';
import type { FaultOptions } from './options.ts';
import { runSuite } from './run-suite.ts';
import { runSupervised } from '../../scripts/harness/run-supervised.ts';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

function readOptions(): FaultOptions | undefined {
  try {
    return parseFaultOptions(
      process.argv.slice(2),
      EXPERIMENTS.map(({ name }) => name),
    );
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}\n`);
    return undefined;
  }
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) return 1;
  const { names, rounds, ...durations } = options;
  const experiments = EXPERIMENTS.filter(({ name, isLong = false }) =>
    names.length === 0 ? !isLong : names.includes(name),
  );
  return runSupervised('fault', print, (task) => runSuite(task, { experiments, rounds, durations, print }));
}

process.exitCode = await main();
