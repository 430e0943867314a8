import { availableParallelism } from 'node:os';

import type { Case, RunResult } from './cases.ts';
import type { LoadGenerator } from './load.ts';
import type { LoadResult, LoadSpec, Mode } from './load-spec.ts';
import { usageDuring } from './process-usage.ts';
import type { UsageDuring } from './process-usage.ts';
import type { System } from './systems.ts';

export interface Bench {
  generator: LoadGenerator;
  providerPid: number;
  /** Called with the result of each load, including the warm-up. */
  onLoad: (system: System['name'], result: LoadResult) => void;
}

/** Warm-up: opens connections, and lets the other system become quiet after its run. */
const WARM_SECONDS = 0.5;
export const BYTES_PER_MB = 1024 * 1024;

const PATHS: Record<Mode, string> = { complete: '/chat', stream: '/chat/stream' };
const BODY = JSON.stringify({
  model: 'mobius',
  messages: [
    { role: 'user', content: 'Explain in a few plain sentences how a river finds its way from a spring to the sea.' },
  ],
});

export function specFor({ url, headers }: System, { mode, clients }: Case, until: LoadSpec['until']): LoadSpec {
  return { url: url + PATHS[mode], headers, bodies: [BODY], mode, clients, until };
}

/** A system that answers the load, ours or not. */
export interface Answerer {
  name: string;
  /** The processes by name; empty if they are not ours to measure. */
  pids: Record<string, number>;
  settled(): Promise<void>;
}

/** Warms up, then measures a load until all its work is done. Throws if no request is answered. */
export async function measureLoad(
  { generator, providerPid }: Pick<Bench, 'generator' | 'providerPid'>,
  answerer: Answerer,
  load: (seconds: number) => Promise<LoadResult>,
  { warmSeconds, seconds }: { warmSeconds: number; seconds: number },
): Promise<UsageDuring<LoadResult>> {
  const run = async (forSeconds: number) => {
    const result = assertAnswered(answerer, await load(forSeconds));
    await answerer.settled();
    return result;
  };
  await run(warmSeconds);
  const pids = { ...answerer.pids, generator: generator.pid, provider: providerPid };
  return usageDuring(pids, () => run(seconds));
}

function assertAnswered({ name }: Pick<Answerer, 'name'>, result: LoadResult): LoadResult {
  if (result.answered > 0) return result;
  throw new Error(`${name} answered no request: ${Object.keys(result.errors).join(', ')}.`);
}

async function runLoad(bench: Bench, system: System, benchCase: Case, until: LoadSpec['until']): Promise<LoadResult> {
  const result = await bench.generator.run(specFor(system, benchCase, until));
  bench.onLoad(system.name, result);
  return result;
}

/** Runs one case once. */
export async function runCase(
  bench: Bench,
  system: System,
  { round, seconds, ...benchCase }: Case & { round: number; seconds: number },
): Promise<RunResult> {
  const load = (forSeconds: number) => runLoad(bench, system, benchCase, { seconds: forSeconds });
  const usage = await measureLoad(bench, system, load, { warmSeconds: WARM_SECONDS, seconds });
  return { system: system.name, ...benchCase, round, ...figuresOf(usage, Object.keys(system.pids)) };
}

function figuresOf(
  { result, elapsedMs, byProcess, machineCpuMs }: UsageDuring<LoadResult>,
  pipeline: readonly string[],
): Omit<RunResult, 'system' | 'mode' | 'clients' | 'round'> {
  const cpuMs = (name: string) => byProcess[name]?.cpuMs ?? 0;
  const pipelineMs = pipeline.reduce((sum, name) => sum + cpuMs(name), 0);
  const provider = cpuMs('provider');
  const generator = cpuMs('generator');
  const allMs = elapsedMs * availableParallelism();
  const { answered } = result;
  return {
    answered,
    errors: result.errors,
    requestsPerSecond: result.requestsPerSecond,
    latencyP50Ms: result.latencyMs.p50,
    latencyP99Ms: result.latencyMs.p99,
    firstChunkP50Ms: result.firstChunkMs?.p50,
    cpuMsPerRequest: Object.fromEntries(pipeline.map((name) => [name, cpuMs(name) / answered])),
    pipelineCpuMsPerRequest: pipelineMs / answered,
    peakMb: Object.fromEntries(pipeline.map((name) => [name, (byProcess[name]?.peakBytes ?? 0) / BYTES_PER_MB])),
    cpuShare: {
      pipeline: pipelineMs / allMs,
      provider: provider / allMs,
      generator: generator / allMs,
      others: Math.max(0, machineCpuMs - pipelineMs - provider - generator) / allMs,
    },
  };
}

const MEMORY_REQUESTS = 1_000;
const MEMORY_CLIENTS = 32;

export interface RedisCost {
  mode: Mode;
  system: System['name'];
  bytesPerRequest: number;
  /** Most frequent first, including commands inside scripts. */
  commandsPerRequest: Record<string, number>;
}

/**
 * The memory and the commands that a request costs Redis, after a warm-up. Measured before everything else: later,
 * entries would leave the limits' windows meanwhile and make the difference too small.
 */
export async function measureRedis(bench: Bench, system: System, mode: Mode): Promise<RedisCost> {
  const benchCase = { mode, clients: MEMORY_CLIENTS };
  const until = { requests: MEMORY_REQUESTS };
  assertAnswered(system, await runLoad(bench, system, benchCase, until));
  await system.settled();
  const [memoryBefore, callsBefore] = [await usedMemory(system), await commandCalls(system)];
  const { answered } = assertAnswered(system, await runLoad(bench, system, benchCase, until));
  const [memoryAfter, callsAfter] = [await usedMemory(system), await commandCalls(system)];
  await system.settled();
  const calls = [...callsAfter]
    .map(([name, count]) => [name, (count - (callsBefore.get(name) ?? 0)) / answered] as const)
    .filter(([, count]) => count > 0)
    .sort(([, left], [, right]) => right - left);
  return {
    mode,
    system: system.name,
    bytesPerRequest: (memoryAfter - memoryBefore) / answered,
    commandsPerRequest: Object.fromEntries(calls),
  };
}

async function usedMemory({ redis }: System): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}

async function commandCalls({ redis }: System): Promise<Map<string, number>> {
  const lines = (await redis.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm);
  return new Map([...lines].map(([, name = '', calls]) => [name, Number(calls)]));
}
