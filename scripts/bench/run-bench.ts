import { availableParallelism } from 'node:os';

import { callJson } from '../harness/http.ts';
import { openLedger } from '../harness/ledger.ts';
import type { SupervisedTask } from '../harness/run-supervised.ts';
import { superviseProvider } from '../harness/start-processes.ts';
import type { BenchCase } from './bench-cases.ts';
import { startLoadGenerator } from './load.ts';
import type { LoadGenerator, LoadResult } from './load.ts';
import type { BenchOptions } from './options.ts';
import { usageDuring } from './process-usage.ts';
import type { UsageDuring } from './process-usage.ts';
import { RESULTS_DIR, isFine, renderReport, saveResult, summarise } from './report.ts';
import type { BenchResult, Run } from './report.ts';
import { startSystem } from './systems.ts';
import type { Contender } from './systems.ts';

/**
 * Warm-up: opens connections, and lets the previous contender become quiet. In the first round code is compiled, too:
 * Node.js needs about 8 s of load for the code that all cases share.
 */
const WARM_SECONDS = { firstCase: 8, firstRound: 1.5, later: 0.5 };
const BYTES_PER_MB = 1024 * 1024;
/** Workers run this many requests at once by default, and this many where a case has more clients. */
const CONCURRENCY = { usual: 512, most: 1_024 };

interface Lab {
  generator: LoadGenerator;
  provider: { url: string; pid: number };
  log: (line: string) => void;
  /** How many requests Parley has answered; all must be in its ledger. */
  answered: number;
}

/**
 * Runs contenders in turns, by case and round, so that a busy moment hits all of them. `profileName`: the file of the CPU
 * profile, in RESULTS_DIR. Returns the exit code.
 */
export async function runBench(
  task: SupervisedTask,
  options: BenchOptions,
  print: (line: string) => void,
  profileName: string | undefined,
): Promise<number> {
  const { supervisor, dataDir } = task;
  const { cases, rounds, seconds, isKept } = options;
  const startedAt = new Date();
  const log = (line: string) => {
    print(`bench | ${line}`);
  };
  const provider = await superviseProvider(supervisor, dataDir);
  const { contenders, absent } = await startContenders(task, options, provider.url, profileName, log);
  const lab: Lab = { generator: startLoadGenerator(supervisor), provider, log, answered: 0 };
  const runs: Run[] = [];
  const failures: BenchResult['failures'] = [];
  const warm = new Set<Contender>();
  for (let round = 1; round <= rounds; round += 1) {
    for (const benchCase of cases) {
      await slowDown(provider.url, benchCase);
      // The floor has no memory.
      const asked = contenders.filter(({ name }) => benchCase.history === undefined || name !== 'floor');
      for (const contender of round % 2 === 1 ? asked : asked.toReversed()) {
        const first = warm.has(contender) ? WARM_SECONDS.firstRound : WARM_SECONDS.firstCase;
        warm.add(contender);
        try {
          const warmSeconds = round === 1 ? first : WARM_SECONDS.later;
          runs.push(await runCase(lab, contender, benchCase, { seconds, warmSeconds, round }));
        } catch (error) {
          supervisor.signal.throwIfAborted();
          const why = error instanceof Error ? error.message : String(error);
          failures.push({ kase: benchCase.name, contender: contender.name, round, why });
          log(`round ${round}, ${benchCase.name}, ${contender.name}: failed: ${why}`);
        }
      }
    }
  }
  const groups = Map.groupBy(runs, ({ kase, contender }) => `${kase} ${contender}`);
  const result: BenchResult = {
    cases: cases.map(({ name, title }) => ({ name, title })),
    summaries: [...groups.values()].map(summarise),
    rounds,
    seconds,
    isBooked: await isAllBooked(lab, contenders, supervisor.signal),
    absent,
    failures,
  };
  print(renderReport(result));
  print(`\nWritten to ${await saveResult(startedAt, isKept, result)}`);
  return isFine(result) ? 0 : 1;
}

/** Starts the systems one after the other. A Portkey that cannot be installed is left out; the others run. */
async function startContenders(
  { supervisor, dataDir }: SupervisedTask,
  { cases, systems, profile }: BenchOptions,
  providerUrl: string,
  profileName: string | undefined,
  log: Lab['log'],
): Promise<{ contenders: Contender[]; absent: Record<string, string> }> {
  const isCrowded = cases.some(({ clients }) => clients > CONCURRENCY.usual);
  const options = { supervisor, dataDir, providerUrl, log, concurrency: isCrowded ? CONCURRENCY.most : undefined };
  const nodeArgs =
    profile === undefined || profileName === undefined
      ? {}
      : { [profile]: ['--cpu-prof', `--cpu-prof-dir=${RESULTS_DIR}`, `--cpu-prof-name=${profileName}`] };
  const contenders: Contender[] = [];
  const absent: Record<string, string> = {};
  for (const name of systems) {
    try {
      contenders.push(await startSystem(name, options, nodeArgs));
    } catch (error) {
      supervisor.signal.throwIfAborted();
      if (name !== 'portkey') throw error;
      absent[name] = error instanceof Error ? error.message : String(error);
      log(`${name} stays away: ${absent[name]}`);
    }
  }
  return { contenders, absent };
}

/** The provider's own time, the same for all contenders. */
async function slowDown(providerUrl: string, { firstTokenMs = 0, chunkMs = 0 }: BenchCase): Promise<void> {
  const body = { first_token_ms: firstTokenMs, chunk_ms: chunkMs };
  const { status } = await callJson('POST', `${providerUrl}/settings`, { body });
  if (status !== 200) throw new Error(`The simulated provider refused its settings (status ${status}).`);
}

async function isAllBooked({ answered }: Lab, contenders: readonly Contender[], signal: AbortSignal): Promise<boolean> {
  for (const { ledger: books } of contenders) {
    if (books === undefined) continue;
    const ledger = await openLedger(books.mongodbUri);
    const booked = await ledger.waitFor(books.tenantId, answered, signal);
    await ledger.close();
    if (booked !== answered) return false;
  }
  return true;
}

/** Warms up, then measures a load until all its work is done. Throws if no request is answered. */
async function runCase(
  lab: Lab,
  contender: Contender,
  benchCase: BenchCase,
  { seconds, warmSeconds, round }: { seconds: number; warmSeconds: number; round: number },
): Promise<Run> {
  const { generator, provider, log } = lab;
  const { name, pids } = contender;
  const { mode, clients, name: kase } = benchCase;
  const { prepared = 0, ...ask } = await contender.prepare(benchCase);
  const note = (answered: number) => {
    if (contender.ledger !== undefined) lab.answered += answered;
  };
  note(prepared);
  const load = async (forSeconds: number): Promise<LoadResult> => {
    const result = await generator.run({ ...ask, mode, clients, seconds: forSeconds });
    note(result.answered);
    if (result.answered === 0)
      throw new Error(`${name} answered no request: ${Object.keys(result.errors).join(', ')}.`);
    await contender.settled();
    return result;
  };
  await load(warmSeconds);
  const everyone = { ...pids, generator: generator.pid, provider: provider.pid };
  const usage = await usageDuring(everyone, () => load(seconds));
  const { answered, errors } = usage.result;
  const run: Run = {
    kase,
    contender: name,
    answered,
    errors: Object.values(errors).reduce((sum, count) => sum + count, 0),
    ...figuresOf(usage, Object.keys(pids), benchCase),
  };
  const { perSecond = 0, cpuMs: cost = NaN } = run.figures;
  log(`round ${round}, ${kase}, ${name}: ${perSecond.toFixed(0)} a second, ${cost.toFixed(2)} CPU-ms`);
  for (const [what, count] of Object.entries(errors)) log(`  ${count} times "${what}"`);
  return run;
}

/** The times of the answers, and the time and memory of the contender's `own` processes per answer. */
function figuresOf(
  { result, elapsedMs, byProcess, machineCpuMs }: UsageDuring<LoadResult>,
  own: readonly string[],
  { firstTokenMs = 0 }: BenchCase,
): Pick<Run, 'figures' | 'othersShare'> {
  const { answered, perSecond, latencyMs, firstTextMs } = result;
  const cpuMsOf = (names: readonly string[]) => names.reduce((sum, name) => sum + (byProcess[name]?.cpuMs ?? 0), 0);
  const memoryMbOf = (name: string) => (byProcess[name]?.peakBytes ?? 0) / BYTES_PER_MB;
  return {
    othersShare: Math.max(0, machineCpuMs - cpuMsOf(Object.keys(byProcess))) / (elapsedMs * availableParallelism()),
    figures: {
      perSecond,
      p50Ms: latencyMs.p50,
      p99Ms: latencyMs.p99,
      ...(firstTextMs === undefined
        ? {}
        : { firstTextAddedP50Ms: firstTextMs.p50 - firstTokenMs, firstTextAddedP99Ms: firstTextMs.p99 - firstTokenMs }),
      cpuMs: cpuMsOf(own) / answered,
      memoryMb: own.reduce((sum, name) => sum + memoryMbOf(name), 0),
      ...Object.fromEntries(own.map((name) => [`cpuMs ${name}`, cpuMsOf([name]) / answered])),
      ...Object.fromEntries(own.map((name) => [`memoryMb ${name}`, memoryMbOf(name)])),
    },
  };
}
