import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { ROOT } from '../../scripts/harness/program.ts';
import type { SupervisedTask } from '../../scripts/harness/run-supervised.ts';
import { renderFaults } from './checker/verdict.ts';
import type { Durations, Experiment } from './experiment.ts';
import { renderReport } from './report.ts';
import { hasPassed, runExperiment } from './run-experiment.ts';
import type { Outcome } from './run-experiment.ts';

/** Where the logs of failed experiments stay. */
const FAILED_DIR = join(ROOT, '.data', 'fault-logs');

export interface Suite {
  experiments: readonly Experiment[];
  rounds: number;
  durations: Durations;
  print: (line: string) => void;
}

/** Returns the exit code. */
export async function runSuite({ supervisor, dataDir }: SupervisedTask, suite: Suite): Promise<number> {
  const { experiments, rounds, durations, print } = suite;
  const outcomes: Outcome[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const { name: experimentName, ...experiment } of experiments) {
      const name = rounds === 1 ? experimentName : `${experimentName}#${round}`;
      print(`${name}: ${experiment.title} ...`);
      const place = { dataDir: join(dataDir, name), signal: supervisor.signal };
      const outcome = await runExperiment({ ...experiment, name }, place, 'full', durations);
      outcomes.push(outcome);
      print(`${name}: ${hasPassed(outcome) ? 'passed' : 'FAILED'} in ${outcome.seconds.toFixed(0)} s`);
      if (!hasPassed(outcome)) await explain(outcome, place.dataDir, print);
      // The next ones need neither its data nor its memory.
      await rm(place.dataDir, { recursive: true, force: true });
      if (outcome.evidence !== undefined) outcome.evidence = { ...outcome.evidence, logs: [] };
    }
  }
  print(renderReport(outcomes));
  return outcomes.every(hasPassed) ? 0 : 1;
}

async function explain(outcome: Outcome, dataDir: string, print: Suite['print']): Promise<void> {
  for (const line of outcome.verdicts.flatMap(renderFaults)) print(`  ${line}`);
  const stamp = new Date().toISOString().replaceAll(':', '-').slice(0, 19);
  const folder = join(FAILED_DIR, `${stamp}-${outcome.name.replace('#', '-')}`);
  await mkdir(folder, { recursive: true });
  await cp(join(dataDir, 'logs'), folder, { recursive: true }).catch(() => undefined);
  await writeFile(join(folder, 'evidence.json'), JSON.stringify(withoutSecrets(outcome), undefined, 1));
  print(`  The logs of its processes and what was seen: ${folder}`);
}

/** The logs lie beside it. */
function withoutSecrets({ evidence, verdicts, figures }: Outcome): object {
  if (evidence === undefined) return { verdicts, figures };
  const { requests, provider, ledger, accounts, records, queues, exits } = evidence;
  return {
    verdicts,
    figures,
    queues,
    exits,
    accounts,
    records,
    ledger,
    provider: Object.fromEntries(provider),
    requests,
  };
}
