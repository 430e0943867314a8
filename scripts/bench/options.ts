import { parseArgs } from 'node:util';

import { readNumber } from '../harness/read-number.ts';
import type { Mode } from './load-spec.ts';
import type { Target } from './rivals/contenders.ts';
import { RIVAL_CASES } from './rivals/rival-cases.ts';
import type { RivalCase } from './rivals/rival-cases.ts';
import { MEASURES } from './stateful/measures.ts';
import { STATEFUL_SYSTEMS } from './stateful/stateful-options.ts';
import type { StatefulOptions } from './stateful/stateful-options.ts';

type Profiled = 'ingress' | 'worker';

export interface BenchOptions {
  modes: Mode[];
  clients: number[];
  rounds: number;
  /** Duration of every measured run. */
  seconds: number;
  /** Runs this process of Parley with the CPU profiler; the floor is left out. */
  profile: Profiled | undefined;
  /** Another benchmark instead of the comparison with the floor. */
  other: OtherBench | undefined;
  /** Ledger entries for the reconciliation benchmark. */
  rows: number;
  rivals: RivalsOptions;
  stateful: StatefulOptions;
}

interface RivalsOptions {
  cases: RivalCase[];
  /** The systems that this script starts. */
  systems: string[];
  /** Servers that are already running. */
  targets: Target[];
  rounds: number;
  seconds: number;
  /** Whether the result becomes part of docs/benchmarks. */
  isKept: boolean;
}

type OtherBench = 'batch' | 'usage' | 'reconcile' | 'micro' | 'rivals' | 'stateful' | 'charts';

const SYSTEMS = ['pass-through', 'portkey', 'floor', 'parley'];

export const USAGE = `npm run bench -- [--quick] [--only complete|stream] [--clients 1,32,128] [--rounds N] [--seconds N]
                [--profile ingress|worker]
npm run bench -- batch [--clients 1,8,32] [--rounds N] [--seconds N]   requests beside a batch of 10,000 lines
npm run bench -- usage                                       GET /usage over a month of 1,000,000 requests
npm run bench -- reconcile [--rows 200000]                    reconciliation of a ledger with so many entries
npm run bench -- micro [--rounds N]                          single steps of a request, each alone in one process
npm run bench -- --rivals [--cases complete-32,live-100] [--systems ${SYSTEMS.join(',')}]
                [--target name=URL[,model]] [--rounds N] [--seconds N] [--keep] [--profile ingress|worker]
                beside other gateways; the key of a target is in TARGET_KEY_<NAME>; --keep writes to docs/benchmarks
npm run bench -- stateful [--measures limits,drift] [--systems ${STATEFUL_SYSTEMS.join(',')}] [--adapter FILE]
                [--target name=URL[,model]] [--provider-port N] [--quick] [--keep]
                exact limits, books, resumes, fairness, recovery: docs/benchmarks/stateful.md
npm run bench -- charts                                      draws the kept runs of docs/benchmarks as SVG`;

const MODES: readonly Mode[] = ['complete', 'stream'];
const CLIENTS_MAX = 10_000;
const ROWS_MAX = 10_000_000;

function readChoice<T extends string>(name: string, text: string | undefined, choices: readonly T[]): T | undefined {
  if (text === undefined) return undefined;
  const choice = choices.find((known) => known === text);
  if (choice === undefined) throw new Error(`--${name} must be ${choices.join(' or ')}, not "${text}".`);
  return choice;
}

/** Three rounds take about five minutes, `--quick` about one. Throws an error of one sentence. */
export function parseBenchOptions(args: string[]): BenchOptions {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      only: text,
      clients: text,
      rounds: text,
      seconds: text,
      profile: text,
      rows: { ...text, default: '200000' },
      rivals: { type: 'boolean', default: false },
      cases: { ...text, default: RIVAL_CASES.map(({ name }) => name).join(',') },
      systems: text,
      measures: { ...text, default: MEASURES.map(({ name }) => name).join(',') },
      adapter: { ...text, multiple: true, default: [] },
      'provider-port': text,
      target: { ...text, multiple: true, default: [] },
      keep: { type: 'boolean', default: false },
    },
  });
  const profile = readChoice('profile', values.profile, ['ingress', 'worker'] as const);
  const mode = readChoice('only', values.only, MODES);
  const [name, ...rest] = positionals;
  if (rest.length > 0) throw new Error(`One benchmark at a time, not "${positionals.join(' ')}".`);
  const named = readChoice('benchmark', name, ['batch', 'usage', 'reconcile', 'micro', 'stateful', 'charts'] as const);
  const other = values.rivals ? 'rivals' : named;
  const clients = values.clients ?? usualClients(profile, other);
  const defaults =
    values.quick || profile !== undefined ? { rounds: '1', seconds: '3' } : { rounds: '3', seconds: '6' };
  const rounds = readNumber('rounds', values.rounds ?? defaults.rounds, 100);
  const seconds = readNumber('seconds', values.seconds ?? defaults.seconds, 600);
  if (other === 'stateful' && values.quick && values.keep)
    throw new Error('--keep keeps measurements, and --quick makes none.');
  const targets = values.target.map((target) => readTarget(target, process.env));
  const providerPort = values['provider-port'];
  return {
    modes: mode === undefined ? [...MODES] : [mode],
    clients: clients.split(',').map((count) => readNumber('clients', count.trim(), CLIENTS_MAX)),
    rounds,
    seconds,
    profile,
    other,
    rows: readNumber('rows', values.rows, ROWS_MAX),
    rivals: {
      cases: readList('cases', values.cases, RIVAL_CASES, (benchCase) => benchCase.name),
      systems: readSystems(SYSTEMS, other === 'stateful' ? undefined : values.systems),
      targets,
      rounds,
      seconds,
      isKept: values.keep,
    },
    stateful: {
      systems: readSystems(STATEFUL_SYSTEMS, other === 'stateful' ? values.systems : undefined),
      adapters: values.adapter,
      targets,
      measures: readList('measures', values.measures, MEASURES, ({ name: measure }) => measure).map((one) => one.name),
      providerPort: providerPort === undefined ? undefined : readNumber('provider-port', providerPort, 65_535),
      size: values.quick ? 'smoke' : 'full',
      isKept: values.keep,
    },
  };
}

/** `none` leaves out the systems that a script starts, to use only `--target` and `--adapter`. */
function readSystems<T extends string>(known: readonly T[], text = known.join(',')): T[] {
  return text === 'none' ? [] : readList('systems', text, known, (system) => system);
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

function usualClients(profile: Profiled | undefined, other: OtherBench | undefined): string {
  if (other === 'batch') return '1,8,32';
  return profile === undefined ? '1,32,128' : '32';
}
