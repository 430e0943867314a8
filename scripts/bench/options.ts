import { parseArgs } from 'node:util';

import { readNumber } from '../harness/read-number.ts';
import { BENCH_CASES } from './bench-cases.ts';
import type { BenchCase } from './bench-cases.ts';

/** A running server that speaks OpenAI's protocol. */
export interface Target {
  name: string;
  /** Ends with its version segment. */
  url: string;
  headers?: Record<string, string>;
  model?: string;
}

export interface BenchOptions {
  /** Single steps of a request, each alone in one process, instead of whole systems. */
  isMicro: boolean;
  cases: BenchCase[];
  /** The systems that the benchmark starts. */
  systems: string[];
  targets: Target[];
  rounds: number;
  /** Duration of every measured run. */
  seconds: number;
  /** Runs this process of Parley with the CPU profiler. */
  profile: 'ingress' | 'worker' | undefined;
  /** Whether the result becomes docs/benchmarks/rivals.json. */
  isKept: boolean;
}

const SYSTEMS = ['pass-through', 'portkey', 'floor', 'parley'];

export const USAGE = `npm run bench -- [--rivals] [--cases complete-32,live-100] [--systems ${SYSTEMS.join(',')}]
                [--target name=URL[,model]] [--rounds N] [--seconds N] [--quick] [--profile ingress|worker] [--keep]
  Parley beside the floor, or with --rivals beside other gateways; the cases are
  ${BENCH_CASES.map(({ name }) => name).join(', ')}
  the key of a target is in TARGET_KEY_<NAME>; --keep writes docs/benchmarks/rivals.json
npm run bench -- micro [--rounds N]
  single steps of a request, each alone in one process`;

/** Three rounds of the floor and Parley take about five minutes, `--quick` about one. Throws an error of one sentence. */
export function parseBenchOptions(args: string[]): BenchOptions {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      rivals: flag,
      quick: flag,
      keep: flag,
      cases: text,
      systems: text,
      target: { ...text, multiple: true, default: [] },
      rounds: text,
      seconds: text,
      profile: text,
    },
  });
  const { profile, rivals: isBesideRivals } = values;
  if (profile !== undefined && profile !== 'ingress' && profile !== 'worker')
    throw new Error(`--profile must be ingress or worker, not "${profile}".`);
  if (positionals.length > 0 && positionals.join(' ') !== 'micro')
    throw new Error(`The benchmark with a name of its own is micro, not "${positionals.join(' ')}".`);
  const isShort = values.quick || profile !== undefined;
  return {
    isMicro: positionals.length > 0,
    cases: readList('cases', values.cases ?? usualCases(isBesideRivals, profile), BENCH_CASES, ({ name }) => name),
    // Only running servers are measured with `none`.
    systems:
      values.systems === 'none'
        ? []
        : readList('systems', values.systems ?? usualSystems(isBesideRivals, profile), SYSTEMS, (name) => name),
    targets: values.target.map((target) => readTarget(target, process.env)),
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

/** Keys come from the environment, because arguments appear in the list of processes. */
function readTarget(text: string, env: NodeJS.ProcessEnv): Target {
  const [, name, url, model] = /^([\w-]+)=([^,]+)(?:,(.+))?$/.exec(text) ?? [];
  if (name === undefined || url === undefined || URL.parse(url) === null)
    throw new Error(`--target takes name=URL or name=URL,model; not "${text}".`);
  const key = env[`TARGET_KEY_${name.toUpperCase().replaceAll('-', '_')}`];
  return {
    name,
    url: url.replace(/\/+$/, ''),
    ...(model === undefined ? {} : { model }),
    ...(key === undefined ? {} : { headers: { Authorization: `Bearer ${key}` } }),
  };
}
