/**
 * `npm run test:upgrade [-- --from COMMIT] [U1 U2 …]`: the processes of an earlier commit beside those of this folder,
 * over the same stores (docs/guide/operating.md).
 */
import { parseArgs } from 'node:util';

import { readArguments } from '../../scripts/harness/read-arguments.ts';
import { runSupervised } from '../../scripts/harness/run-supervised.ts';
import type { Experiment } from '../fault/experiment.ts';
import { runSuite } from '../fault/run-suite.ts';
import { openEarlierVersion } from './earlier-version.ts';
import { mixedVersions } from './mixed-versions.ts';
import { rollingUpgrade } from './rolling-upgrade.ts';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

function experimentsFrom(earlier: string): Experiment[] {
  const rolling = { from: earlier, to: undefined };
  return [
    mixedVersions('U1', 'workers of the earlier version behind ingresses of this one', earlier, 'ingresses'),
    mixedVersions('U2', 'workers of this version behind ingresses of the earlier one', earlier, 'workers'),
    rollingUpgrade({
      name: 'U3',
      title: 'an upgrade under load: workers first, then ingresses',
      ...rolling,
      order: ['workers', 'ingresses'],
    }),
    rollingUpgrade({
      name: 'U4',
      title: 'an upgrade under load: ingresses first, then workers',
      ...rolling,
      order: ['ingresses', 'workers'],
    }),
    rollingUpgrade({
      name: 'U5',
      title: 'back to the earlier version under load: ingresses first, then workers',
      from: undefined,
      to: earlier,
      order: ['ingresses', 'workers'],
    }),
  ];
}

const USAGE = `npm run test:upgrade -- [--from COMMIT] [U1 U2 …]
                the experiments of docs/guide/operating.md, all where none is named; COMMIT is HEAD~1`;
const NAMES = experimentsFrom('').map(({ name }) => name);

/** Throws one sentence. */
function parseOptions(args: string[]): { from: string; names: string[] } {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    // The first parent: what the branch was before its last change landed.
    options: { from: { type: 'string', default: 'HEAD~1' } },
  });
  const names = positionals.map((name) => name.toUpperCase());
  const strange = names.find((name) => !NAMES.includes(name));
  if (strange !== undefined) throw new Error(`There is no experiment "${strange}"; there are ${NAMES.join(', ')}.`);
  return { from: values.from, names };
}

async function main(): Promise<number> {
  const read = readArguments(USAGE, process.argv.slice(2), parseOptions);
  if ('exitCode' in read) return read.exitCode;
  const { from, names } = read.options;
  return runSupervised('upgrade', print, async (task) => {
    const { root, commit } = await openEarlierVersion(from, { log: print, signal: task.supervisor.signal });
    print(`The earlier version is ${commit}.`);
    const experiments = experimentsFrom(root).filter(({ name }) => names.length === 0 || names.includes(name));
    return runSuite(task, { experiments, rounds: 1, durations: { minutes: 0, outageSeconds: 0 }, print });
  });
}

process.exitCode = await main();
