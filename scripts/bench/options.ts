import { parseArgs } from 'node:util';

import { readNumber } from '../harness/read-number.ts';
import type { Mode } from './load-spec.ts';

type Profiled = 'ingress' | 'worker';

export interface BenchOptions {
  modes: Mode[];
  clients: number[];
  rounds: number;
  /** Of every measured run. */
  seconds: number;
  /** Runs this process of Parley with the CPU profiler; the floor is left out. */
  profile: Profiled | undefined;
  /** One of the further benchmarks instead of the comparison with the floor. */
  other: OtherBench | undefined;
  /** Ledger entries of the benchmark of reconciliation. */
  rows: number;
}

type OtherBench = 'batch' | 'usage' | 'reconcile' | 'micro';

export const USAGE = `npm run bench -- [--quick] [--only complete|stream] [--clients 1,32,128] [--rounds N] [--seconds N]
                [--profile ingress|worker]
npm run bench -- batch [--clients 1,8,32] [--rounds N] [--seconds N]   requests beside a batch of 10,000 lines
npm run bench -- usage                                       GET /usage over a month of 1,000,000 requests
npm run bench -- reconcile [--rows 200000]                    reconciliation of a ledger with so many entries
npm run bench -- micro [--rounds N]                          single steps of a request, each alone in one process`;

const MODES: readonly Mode[] = ['complete', 'stream'];
const CLIENTS_MAX = 10_000;
const ROWS_MAX = 10_000_000;

function readChoice<T extends string>(name: string, text: string | undefined, choices: readonly T[]): T | undefined {
  if (text === undefined) return undefined;
  const choice = choices.find((known) => known === text);
  if (choice === undefined) throw new Error(`--${name} must be ${choices.join(' or ')}, not "${text}".`);
  return choice;
}

/** Three rounds take about five minutes, `--quick` about one. Throws one sentence. */
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
    },
  });
  const profile = readChoice('profile', values.profile, ['ingress', 'worker'] as const);
  const mode = readChoice('only', values.only, MODES);
  const [name, ...rest] = positionals;
  if (rest.length > 0) throw new Error(`One benchmark at a time, not "${positionals.join(' ')}".`);
  const other = readChoice('benchmark', name, ['batch', 'usage', 'reconcile', 'micro'] as const);
  const clients = values.clients ?? usualClients(profile, other);
  const defaults =
    values.quick || profile !== undefined ? { rounds: '1', seconds: '3' } : { rounds: '3', seconds: '6' };
  return {
    modes: mode === undefined ? [...MODES] : [mode],
    clients: clients.split(',').map((count) => readNumber('clients', count.trim(), CLIENTS_MAX)),
    rounds: readNumber('rounds', values.rounds ?? defaults.rounds, 100),
    seconds: readNumber('seconds', values.seconds ?? defaults.seconds, 600),
    profile,
    other,
    rows: readNumber('rows', values.rows, ROWS_MAX),
  };
}

function usualClients(profile: Profiled | undefined, other: OtherBench | undefined): string {
  if (other === 'batch') return '1,8,32';
  return profile === undefined ? '1,32,128' : '32';
}
