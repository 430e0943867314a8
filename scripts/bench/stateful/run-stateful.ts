import type { SupervisedTask } from '../../harness/run-supervised.ts';
import { superviseProvider } from '../../harness/supervise-provider.ts';
import { readAdapter } from './adapter-file.ts';
import { createProvider } from './lab.ts';
import type { Lab } from './lab.ts';
import type { Measure, Outcome, SystemResult } from './measure.ts';
import { MEASURES } from './measures.ts';
import type { StatefulOptions, StatefulSystemName } from './stateful-options.ts';
import { renderStateful } from './stateful-report.ts';
import { saveResult } from '../history.ts';
import { startLoadGenerator } from '../load.ts';
import type { StatefulSystem } from './system.ts';
import { startLiteLlmSystem } from './systems/litellm.ts';
import { openAiTarget } from './systems/openai-target.ts';
import { startParleySystem } from './systems/parley.ts';
import type { StartOptions } from './systems/parley.ts';
import { startPortkeySystem } from './systems/portkey.ts';

const STARTERS: Record<StatefulSystemName, (options: StartOptions) => Promise<StatefulSystem>> = {
  parley: startParleySystem,
  portkey: startPortkeySystem,
  litellm: startLiteLlmSystem,
};

type Print = (line: string) => void;

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Measures one system after the other, so that none takes the machine from another. Returns the exit code. */
export async function runStateful(
  { supervisor, dataDir }: SupervisedTask,
  options: StatefulOptions,
  print: Print,
): Promise<number> {
  const startedAt = new Date();
  const log = (line: string) => {
    print(`bench | ${line}`);
  };
  const { url: providerUrl } = await superviseProvider(supervisor, dataDir, options.providerPort);
  log(`the simulated provider listens at ${providerUrl}/v1`);
  const measures = MEASURES.filter(({ name }) => options.measures.includes(name));
  const context = { supervisor, dataDir, providerUrl, log };
  const generators = [startLoadGenerator(supervisor), startLoadGenerator(supervisor)];
  const { size } = options;
  const results: SystemResult[] = [];
  for (const [name, open] of candidates(options, context)) {
    const system = await open().catch((error: unknown) => {
      supervisor.signal.throwIfAborted();
      return { kind: 'not tried', why: `could not be started: ${reasonOf(error)}` } as const;
    });
    results.push(
      'kind' in system
        ? { name, version: '–', notes: [], outcomes: Object.fromEntries(measures.map((each) => [each.name, system])) }
        : await measureSystem(system, measures, { signal: supervisor.signal, providerUrl, generators, size, log }),
    );
  }
  const report = renderStateful(measures, results, size);
  print(`\n${report}`);
  const named = measures.map(({ name, title }) => ({ name, title }));
  const kept = { kind: 'stateful', startedAt, isKept: options.isKept } as const;
  const file = await saveResult(kept, { size, measures: named, systems: results }, report);
  print(`\nWritten to ${file}`);
  return results.some(({ name, outcomes }) => name === 'parley' && !isFine(Object.values(outcomes))) ? 1 : 0;
}

/** A promise broken by a rival is a finding; one broken by Parley is a bug in this repository. */
function isFine(outcomes: readonly Outcome[]): boolean {
  return outcomes.every((one) => one.kind === 'measured' && one.verdicts.every(({ isKept }) => isKept));
}

function candidates(
  { systems, adapters, targets }: StatefulOptions,
  context: StartOptions,
): [name: string, open: () => Promise<StatefulSystem>][] {
  return [
    ...systems.map((name) => [name, () => STARTERS[name](context)] as [string, () => Promise<StatefulSystem>]),
    ...adapters.map((file) => [file, () => readAdapter(file)] as [string, () => Promise<StatefulSystem>]),
    ...targets.map((target): [string, () => Promise<StatefulSystem>] => [
      target.name,
      () => Promise.resolve(openAiTarget(target)),
    ]),
  ];
}

async function measureSystem(
  system: StatefulSystem,
  measures: readonly Measure[],
  options: Pick<Lab, 'signal' | 'generators' | 'size' | 'log'> & { providerUrl: string },
): Promise<SystemResult> {
  const { signal, providerUrl, generators, size, log } = options;
  const lab: Lab = { system, provider: createProvider(providerUrl), generators, size, signal, log };
  const outcomes: Record<string, Outcome> = {};
  for (const measure of measures) {
    outcomes[measure.name] = await measureOnce(lab, measure);
    log(`${system.name}, ${measure.name}: ${shortly(outcomes[measure.name])}`);
  }
  await system.close?.();
  const { name, version, notes } = system;
  return { name, version, notes, outcomes };
}

async function measureOnce(lab: Lab, measure: Measure): Promise<Outcome> {
  const missing = measure.needs.flatMap((feature) => lab.system.missing[feature] ?? []);
  // A missing feature is the answer, whatever else could not be tried.
  const [first] = missing.toSorted(
    (one, other) => Number(other.kind === 'not supported') - Number(one.kind === 'not supported'),
  );
  if (first !== undefined) return first;
  try {
    return { kind: 'measured', ...(await measure.run(lab)) };
  } catch (error) {
    lab.signal.throwIfAborted();
    return { kind: 'failed', why: reasonOf(error) };
  }
}

function shortly(outcome: Outcome | undefined): string {
  if (outcome?.kind !== 'measured') return `${outcome?.kind ?? ''}: ${outcome?.why ?? ''}`;
  const broken = outcome.verdicts.filter(({ isKept }) => !isKept);
  const figures = Object.entries(outcome.figures).map(([name, value]) => `${name} ${value}`);
  return [...figures, ...broken.map(({ promise, seen }) => `BROKEN: ${promise} (${seen})`)].join('; ');
}
