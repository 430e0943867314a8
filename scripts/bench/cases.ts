import type { Mode } from './load-spec.ts';

export type SystemName = 'floor' | 'parley';

/** One cell of the benchmark. */
export interface Case {
  mode: Mode;
  clients: number;
}

/** One case of one system, run once; figures are per request or for the whole run. */
export interface RunResult extends Case {
  system: SystemName;
  round: number;
  answered: number;
  errors: Record<string, number>;
  requestsPerSecond: number;
  latencyP50Ms: number;
  latencyP99Ms: number;
  firstChunkP50Ms: number | undefined;
  /** By process, including what the ledger costs after the last answer. */
  cpuMsPerRequest: Record<string, number>;
  /** Ingress, worker and stores, without provider and load generator. */
  pipelineCpuMsPerRequest: number;
  /** Resident memory by process. */
  peakMb: Record<string, number>;
  /** Shares of all cores, 0 to 1. */
  cpuShare: { pipeline: number; provider: number; generator: number; others: number };
}

/** The median of each figure over the rounds; errors are added up. */
export type CaseSummary = Omit<RunResult, 'round'>;

/** For an even number of values, the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

function medianByName(records: readonly Record<string, number>[]): Record<string, number> {
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  return Object.fromEntries(
    names.map((name) => [name, median(records.flatMap((record) => record[name] ?? []))] as const),
  );
}

/** Throws if there is no run. */
export function summarise(runs: readonly RunResult[]): CaseSummary {
  const [first] = runs;
  if (first === undefined) throw new Error('There is no run to summarise.');
  const of = (figure: (run: RunResult) => number) => median(runs.map(figure));
  const errors: Record<string, number> = {};
  for (const run of runs) {
    for (const [what, count] of Object.entries(run.errors)) errors[what] = (errors[what] ?? 0) + count;
  }
  return {
    system: first.system,
    mode: first.mode,
    clients: first.clients,
    answered: runs.reduce((sum, run) => sum + run.answered, 0),
    errors,
    requestsPerSecond: of((run) => run.requestsPerSecond),
    latencyP50Ms: of((run) => run.latencyP50Ms),
    latencyP99Ms: of((run) => run.latencyP99Ms),
    firstChunkP50Ms: first.firstChunkP50Ms === undefined ? undefined : of((run) => run.firstChunkP50Ms ?? NaN),
    cpuMsPerRequest: medianByName(runs.map((run) => run.cpuMsPerRequest)),
    pipelineCpuMsPerRequest: of((run) => run.pipelineCpuMsPerRequest),
    peakMb: medianByName(runs.map((run) => run.peakMb)),
    cpuShare: {
      pipeline: of((run) => run.cpuShare.pipeline),
      provider: of((run) => run.cpuShare.provider),
      generator: of((run) => run.cpuShare.generator),
      others: of((run) => run.cpuShare.others),
    },
  };
}
