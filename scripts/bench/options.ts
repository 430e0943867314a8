import { parseArgs } from 'node:util';

import { readNumber } from '../harness/read-arguments.ts';
import { BENCH_CASES } from './bench-cases.ts';
import type { BenchCase } from './bench-cases.ts';

export interface BenchOptions {
  cases: BenchCase[];
  /** The systems that the benchmark starts. */
  systems: string[];
  rounds: number;
  /** Duration of every measured run. */
  seconds: number;
  /** Runs this process of Parley with the CPU profiler. */
  profile: 'ingress' | 'worker' | undefined;
  /** Whether the result becomes docs/benchmarks/rivals.json. */
  isKept: boolean;
}

const SYSTEMS = ['portkey', 'floor', 'parley'];

export const USAGE = `npm run bench -- [--rivals] [--cases complete-32,live-100] [--systems ${SYSTEMS.join(',')}]
                [--rounds N] [--seconds N] [--quick] [--profile ingress|worker] [--keep]
  Parley beside the floor, or with --rivals beside other gateways; the cases are
  ${BENCH_CASES.map(({ name }) => name).join(', ')}
  --keep writes docs/benchmarks/rivals.json`;

/** Three rounds of the floor and Parley take about five minutes, `--quick` about one. Throws an error of one sentence. */
export function parseBenchOptions(args: string[]): BenchOptions {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const { values } = parseArgs({
    args,
    options: {
      rivals: flag,
      quick: flag,
      keep: flag,
      cases: text,
      systems: text,
      rounds: text,
      seconds: text,
      profile: text,
    },
  });
  const { profile, rivals: isBesideRivals } = values;
  if (profile !== undefined && profile !== 'ingress' && profile !== 'worker')
    throw new Error(`--profile must be ingress or worker, not "${profile}".`);
  const isShort = values.quick || profile !== undefined;
  return {
    cases: readList('cases', values.cases ?? usualCases(isBesideRivals, profile), BENCH_CASES, ({ name }) => name),
    systems: readList('systems', values.systems ?? usualSystems(isBesideRivals, profile), SYSTEMS, (name) => name),
    rounds: readNumber('rounds', values.rounds ?? (isShort ? '1' : '3'), 100),
    seconds: readNumber('seconds', values.seconds ?? (isShort ? '3' : '6'), 600),
    profile,
    isKept: values.keep,
  };
}

function usualCases(isBesideRivals: boolean, profile: BenchOptions['profile']): string {
  if (isBesideRivals) return BENCH_CASES.map(({ name }) => name).join(',');
  return profile === undefined ? 'complete-1,complete-32,stream-32,live-100' : 'complete-32,stream-32';
}

function usualSystems(isBesideRivals: boolean, profile: BenchOptions['profile']): string {
  if (profile !== undefined) return 'parley';
  return isBesideRivals ? SYSTEMS.join(',') : 'floor,parley';
}

function readList<T>(option: string, text: string, known: readonly T[], nameOf: (one: T) => string): T[] {
  return text.split(',').map((name) => {
    const found = known.find((one) => nameOf(one) === name.trim());
    if (found !== undefined) return found;
    throw new Error(`--${option} takes ${known.map(nameOf).join(', ')}; not "${name.trim()}".`);
  });
}
