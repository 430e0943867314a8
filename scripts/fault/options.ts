import { parseArgs } from 'node:util';

export interface FaultOptions {
  /** Upper case; none: all. */
  names: string[];
  rounds: number;
}

export const USAGE = 'npm run test:fault -- [E1 E7 R2 …] [--rounds N]';

const ROUNDS_MAX = 1_000;

/** Throws one sentence. */
export function parseFaultOptions(args: string[], known: readonly string[]): FaultOptions {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { rounds: { type: 'string', default: '1' } },
  });
  const names = positionals.map((name) => name.toUpperCase());
  const strange = names.find((name) => !known.includes(name));
  if (strange !== undefined) throw new Error(`There is no experiment "${strange}"; there are ${known.join(', ')}.`);
  const rounds = Number(values.rounds);
  if (!/^\d+$/.test(values.rounds) || rounds < 1 || rounds > ROUNDS_MAX) {
    throw new Error(`--rounds must be a whole number from 1 to ${ROUNDS_MAX}, not "${values.rounds}".`);
  }
  return { names, rounds };
}
