import { availableParallelism } from 'node:os';

import { callJson } from '../../harness/http.ts';
import { openLedger } from '../../harness/ledger.ts';
import type { SupervisedTask } from '../../harness/run-supervised.ts';
import { superviseProvider } from '../../harness/supervise-provider.ts';
import { saveResult } from '../history.ts';
import { startLoadGenerator } from '../load.ts';
import type { LoadGenerator } from '../load.ts';
import type { LoadResult, LoadSpec } from '../load-spec.ts';
import type { BenchOptions } from '../options.ts';
import { nodeArgsFor } from '../run-bench.ts';
import type { ProfileFile } from '../run-bench.ts';
import type { UsageDuring } from '../process-usage.ts';
import { BYTES_PER_MB, measureLoad } from '../run-case.ts';
import { startContenders } from './contenders.ts';
import type { Ask, Contender } from './contenders.ts';
import { takesPart } from './rival-cases.ts';
import type { RivalCase } from './rival-cases.ts';
import { rivalsMarkdown } from './rivals-markdown.ts';
import { renderRivals } from './rivals-report.ts';
import type { RivalsResult } from './rivals-report.ts';
import { summariseRival } from './summary.ts';
import type { RivalRun } from './summary.ts';

/**
 * Warm-up: opens connections, and lets the previous contender become quiet. In the first round code is compiled, too:
 * Node.js needs about 8 s of load for the code that all cases share.
 */
const WARM_SECONDS = { firstCase: 8, firstRound: 1.5, later: 0.5 };

interface Lab {
  generator: LoadGenerator;
  provider: { url: string; pid: number };
  print: (line: string) => void;
  /** How many requests each contender has answered; Parley's must all be in its ledger. */
  answeredBy: Map<string, number>;
}

/** Runs contenders in turns, by case and round, so that a busy moment hits all of them. Returns the exit code. */
export async function runRivals(
  { supervisor, dataDir }: SupervisedTask,
  options: BenchOptions,
  print: (line: string) => void,
  profileFile?: ProfileFile,
): Promise<number> {
  const startedAt = new Date();
  const log = (line: string) => {
    print(`bench | ${line}`);
  };
  const { cases, systems: names, targets, rounds, seconds } = options.rivals;
  const provider = await superviseProvider(supervisor, dataDir);
  const context = { supervisor, dataDir, providerUrl: provider.url, log };
  const { contenders, absent } = await startContenders(
    context,
    { names, targets, cases },
    nodeArgsFor(options, profileFile),
  );
  profileFile?.onWarm();
  const lab: Lab = { generator: startLoadGenerator(supervisor), provider, print: log, answeredBy: new Map() };
  const runs: RivalRun[] = [];
  const failures: RivalsResult['failures'] = [];
  const warm = new Set<Contender>();
  for (let round = 1; round <= rounds; round += 1) {
    for (const benchCase of cases) {
      await slowDown(provider.url, benchCase);
      const asked = contenders.filter(({ name }) => takesPart(name, benchCase));
      for (const contender of round % 2 === 1 ? asked : asked.toReversed()) {
        const first = warm.has(contender) ? WARM_SECONDS.firstRound : WARM_SECONDS.firstCase;
        const warmSeconds = round === 1 ? first : WARM_SECONDS.later;
        warm.add(contender);
        try {
          runs.push(await runCase(lab, contender, { benchCase, seconds, warmSeconds, round }));
        } catch (error) {
          supervisor.signal.throwIfAborted();
          const why = error instanceof Error ? error.message : String(error);
          failures.push({ kase: benchCase.name, contender: contender.name, round, why });
          log(`round ${round}, ${benchCase.name}, ${contender.name}: failed: ${why}`);
        }
      }
    }
  }
  const isBooked = await isAllBooked(lab, contenders, supervisor.signal);
  const groups = Map.groupBy(runs, ({ kase, contender }) => `${kase} ${contender}`);
  const summaries = [...groups.values()].map(summariseRival);
  const named = cases.map(({ name, title }) => ({ name, title }));
  const result: RivalsResult = { cases: named, summaries, rounds, seconds, isBooked, absent, failures };
  print(renderRivals(result));
  const kept = { kind: 'rivals', startedAt, isKept: options.rivals.isKept } as const;
  const file = await saveResult(kept, result, rivalsMarkdown(result));
  print(`\nWritten to ${file}`);
  return isBooked && failures.length === 0 && summaries.every(({ errors }) => errors === 0) ? 0 : 1;
}

/** The provider's own time, the same for all contenders. */
async function slowDown(providerUrl: string, { firstTokenMs = 0, chunkMs = 0 }: RivalCase): Promise<void> {
  const body = { first_token_ms: firstTokenMs, chunk_ms: chunkMs };
  const { status } = await callJson('POST', `${providerUrl}/settings`, { body });
  if (status !== 200) throw new Error(`The simulated provider refused its settings (status ${status}).`);
}

function note({ answeredBy }: Lab, { name }: Contender, answered: number): void {
  answeredBy.set(name, (answeredBy.get(name) ?? 0) + answered);
}

async function isAllBooked(
  { answeredBy }: Lab,
  contenders: readonly Contender[],
  signal: AbortSignal,
): Promise<boolean> {
  for (const { name, parley } of contenders) {
    if (parley === undefined) continue;
    const expected = answeredBy.get(name) ?? 0;
    const ledger = await openLedger(parley.mongo.uri);
    const booked = await ledger.waitFor(parley.tenantId, expected, signal);
    await ledger.close();
    if (booked !== expected) return false;
  }
  return true;
}

async function runCase(
  lab: Lab,
  contender: Contender,
  {
    benchCase,
    seconds,
    warmSeconds,
    round,
  }: { benchCase: RivalCase; seconds: number; warmSeconds: number; round: number },
): Promise<RivalRun> {
  const { generator, provider, print } = lab;
  const ask = await contender.prepare(benchCase, ANSWER);
  note(lab, contender, ask.prepared ?? 0);
  const load = async (forSeconds: number): Promise<LoadResult> => {
    const result = await generator.run(specOf(ask, benchCase, { seconds: forSeconds }));
    note(lab, contender, result.answered);
    return result;
  };
  const bench = { generator, providerPid: provider.pid };
  const usage = await measureLoad(bench, contender, load, { warmSeconds, seconds });
  const { answered, errors } = usage.result;
  const run: RivalRun = {
    kase: benchCase.name,
    contender: contender.name,
    answered,
    errors: Object.values(errors).reduce((sum, count) => sum + count, 0),
    ...usageFigures(usage, contender, benchCase),
  };
  const { perSecond = 0, cpuMs: cost = NaN } = run.figures;
  print(
    `round ${round}, ${benchCase.name}, ${contender.name}: ${perSecond.toFixed(0)} a second, ${cost.toFixed(2)} CPU-ms`,
  );
  for (const [what, count] of Object.entries(errors)) print(`  ${count} times "${what}"`);
  return run;
}

/** The times of the answers, and what the contender's processes used per answer. */
function usageFigures(
  { result, elapsedMs, byProcess, machineCpuMs }: UsageDuring<LoadResult>,
  { pids }: Contender,
  { firstTokenMs = 0 }: RivalCase,
): Pick<RivalRun, 'figures' | 'othersShare'> {
  const { answered, requestsPerSecond, latencyMs, firstChunkMs, resumedMs } = result;
  const cpuMsOf = (names: readonly string[]) => names.reduce((sum, name) => sum + (byProcess[name]?.cpuMs ?? 0), 0);
  const memoryMbOf = (name: string) => (byProcess[name]?.peakBytes ?? 0) / BYTES_PER_MB;
  const own = Object.keys(pids);
  const memoryMb = own.reduce((sum, name) => sum + memoryMbOf(name), 0);
  const isMeasured = own.length > 0;
  return {
    // A contender that is not ours counts among the others.
    othersShare: isMeasured
      ? Math.max(0, machineCpuMs - cpuMsOf(Object.keys(byProcess))) / (elapsedMs * availableParallelism())
      : 0,
    figures: {
      perSecond: requestsPerSecond,
      p50Ms: latencyMs.p50,
      p99Ms: latencyMs.p99,
      ...(firstChunkMs === undefined
        ? {}
        : {
            firstTextAddedP50Ms: firstChunkMs.p50 - firstTokenMs,
            firstTextAddedP99Ms: firstChunkMs.p99 - firstTokenMs,
          }),
      ...(resumedMs === undefined ? {} : { resumedP50Ms: resumedMs.p50, resumedP99Ms: resumedMs.p99 }),
      ...(isMeasured ? { cpuMs: cpuMsOf(own) / answered, memoryMb } : {}),
      ...Object.fromEntries(own.map((name) => [`cpuMs ${name}`, cpuMsOf([name]) / answered])),
      ...Object.fromEntries(own.map((name) => [`memoryMb ${name}`, memoryMbOf(name)])),
    },
  };
}

function specOf(ask: Ask, { mode, clients }: RivalCase, until: LoadSpec['until']): LoadSpec {
  const { url, headers, bodies, resume, keys } = ask;
  const resuming = { ...(resume === undefined ? {} : { resume }), ...(keys === undefined ? {} : { keys }) };
  return { url, headers, bodies, mode, clients, until, ...resuming };
}

/** About as long as an answer of the simulated provider. */
const ANSWER = 'The warm planet helps this garden beside our modern station. '.repeat(13).trim();
