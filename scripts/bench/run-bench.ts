import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';

import { openLedger } from '../harness/ledger.ts';
import { superviseProvider } from '../harness/supervise-provider.ts';
import type { SupervisedTask } from '../harness/run-supervised.ts';
import { summarise } from './cases.ts';
import type { CaseSummary, RunResult } from './cases.ts';
import { RESULTS_DIR } from './history.ts';
import { startLoadGenerator } from './load.ts';
import type { BenchOptions } from './options.ts';
import { probe } from './probe.ts';
import { isFine, renderReport } from './report.ts';
import type { Checks, Setting } from './report.ts';
import { measureRedis, runCase } from './run-case.ts';
import type { Bench, RedisCost } from './run-case.ts';
import { startFloor, startParley } from './systems.ts';
import type { Parley, System } from './systems.ts';

type Print = (line: string) => void;

export interface ProfileFile {
  dir: string;
  name: string;
  /** Called once the processes, and with them the profile, have started and are warm. */
  onWarm: () => void;
}

/** Starts both systems, measures them in turns, prints the report and stores it as JSON. Returns the exit code. */
export async function runBench(
  { supervisor, dataDir }: SupervisedTask,
  options: BenchOptions,
  print: Print,
  profileFile?: ProfileFile,
): Promise<number> {
  const startedAt = new Date();
  const log = (line: string) => {
    print(`bench | ${line}`);
  };
  const provider = await superviseProvider(supervisor, dataDir);
  const context = { supervisor, dataDir, providerUrl: provider.url, log };
  const parley = await startParley(context, nodeArgsFor(options, profileFile));
  const systems: System[] = options.profile === undefined ? [await startFloor(context), parley] : [parley];

  const checks: Checks = { errors: {}, answered: 0, ledgerEntries: 0, ...(await compareAnswers(systems)) };
  // The probe's two requests are in the ledger as well.
  checks.answered += 2;
  const bench: Bench = {
    generator: startLoadGenerator(supervisor),
    providerPid: provider.pid,
    onLoad: (system, { answered, errors }) => {
      if (system === 'parley') checks.answered += answered;
      for (const [what, count] of Object.entries(errors)) {
        const name = `${system}: ${what}`;
        checks.errors[name] = (checks.errors[name] ?? 0) + count;
      }
    },
  };
  const redisCosts = await measureRedisCosts(bench, systems, options.modes);
  profileFile?.onWarm();
  const runs = await measureCases(bench, systems, options, print);
  const ledger = await openLedger(parley.mongo.uri);
  checks.ledgerEntries = await ledger.waitFor(parley.tenantId, checks.answered, supervisor.signal);
  await ledger.close();

  const setting = settingOf(options, parley);
  const summaries = summariseAll(runs);
  print(renderReport(setting, summaries, redisCosts, checks));
  const file = await save(startedAt, { setting, options, summaries, redisCosts, checks, runs });
  print(`\nWritten to ${file}`);
  return isFine(checks) ? 0 : 1;
}

export function nodeArgsFor({ profile }: BenchOptions, file: ProfileFile | undefined) {
  if (profile === undefined || file === undefined) return {};
  return { [profile]: ['--cpu-prof', `--cpu-prof-dir=${file.dir}`, `--cpu-prof-name=${file.name}`] };
}

async function compareAnswers(systems: readonly System[]): Promise<Pick<Checks, 'chunks' | 'sameText'>> {
  const chunks: Record<string, number> = {};
  const texts = new Set<string>();
  for (const system of systems) {
    const answer = await probe(system);
    chunks[system.name] = answer.chunks;
    texts.add(answer.completeText).add(answer.streamText);
  }
  return { chunks, sameText: texts.size === 1 && !texts.has('') };
}

async function measureRedisCosts(
  bench: Bench,
  systems: readonly System[],
  modes: BenchOptions['modes'],
): Promise<RedisCost[]> {
  const costs: RedisCost[] = [];
  for (const mode of modes) {
    for (const system of systems) costs.push(await measureRedis(bench, system, mode));
  }
  return costs;
}

/** Round by round and case by case, both systems one after the other, so that a busy moment of the machine hits both. */
async function measureCases(
  bench: Bench,
  systems: readonly System[],
  { modes, clients, rounds, seconds }: BenchOptions,
  print: Print,
): Promise<RunResult[]> {
  const cases = modes.flatMap((mode) => clients.map((count) => ({ mode, clients: count })));
  const runs: RunResult[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const order = round % 2 === 1 ? systems : systems.toReversed();
    for (const benchCase of cases) {
      for (const system of order) {
        const run = await runCase(bench, system, { ...benchCase, round, seconds });
        runs.push(run);
        print(progressLine(run, runs.length, rounds * cases.length * systems.length));
      }
    }
  }
  return runs;
}

function progressLine(run: RunResult, number: number, total: number): string {
  const { system, mode, clients, requestsPerSecond, pipelineCpuMsPerRequest } = run;
  const what = `${system}, ${mode}, ${clients} client${clients === 1 ? '' : 's'}`;
  return `bench | ${number}/${total} ${what}: ${requestsPerSecond.toFixed(0)} req/s, ${pipelineCpuMsPerRequest.toFixed(2)} CPU-ms`;
}

function summariseAll(runs: readonly RunResult[]): CaseSummary[] {
  const byCase = Map.groupBy(runs, ({ system, mode, clients }) => `${mode} ${clients} ${system}`);
  return [...byCase.values()].map(summarise);
}

function settingOf({ rounds, seconds }: BenchOptions, { mongo }: Parley): Setting {
  const isMeasured = mongo.pid === undefined ? ' (its CPU and memory are not measured)' : '';
  return {
    rounds,
    seconds,
    mongo: mongo.label + isMeasured,
    nodeVersion: `Node.js ${process.version}`,
    machine: `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown processor'})`,
  };
}

async function save(startedAt: Date, content: object): Promise<string> {
  await mkdir(RESULTS_DIR, { recursive: true });
  const file = join(RESULTS_DIR, `${startedAt.toISOString().replaceAll(':', '-')}.json`);
  await writeFile(file, `${JSON.stringify({ startedAt: startedAt.toISOString(), ...content }, undefined, 2)}\n`);
  return file;
}
