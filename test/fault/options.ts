import { parseArgs } from 'node:util';

import { readNumber } from '../../scripts/harness/read-arguments.ts';

export interface FaultOptions {
  /** As `known` has them; none: all. */
  names: string[];
  rounds: number;
  /** How long E17 runs. */
  minutes: number;
  /** How long the outage of E21 lasts. */
  outageSeconds: number;
}

export const USAGE = 'npm run test:fault -- [E1 E7 R2 …] [--rounds N] [--minutes N] [--outage SECONDS]';

const ROUNDS_MAX = 1_000;
const MINUTES_MAX = 10_080;
const OUTAGE_SECONDS_MAX = 86_400;

/** Throws one sentence. */
export function parseFaultOptions(args: string[], known: readonly string[]): FaultOptions {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '1' },
      minutes: { type: 'string', default: '30' },
      outage: { type: 'string', default: '60' },
    },
  });
  const named = (given: string) => known.find((name) => name.toUpperCase() === given.toUpperCase());
  const strange = positionals.find((given) => named(given) === undefined);
  if (strange !== undefined) throw new Error(`There is no experiment "${strange}"; there are ${known.join(', ')}.`);
  return {
    names: positionals.flatMap((given) => named(given) ?? []),
    rounds: readNumber('rounds', values.rounds, ROUNDS_MAX),
    minutes: readNumber('minutes', values.minutes, MINUTES_MAX),
    outageSeconds: readNumber('outage', values.outage, OUTAGE_SECONDS_MAX),
  };
}
