import { median } from '../cases.ts';

/** One case of one contender, run once; figures are per request or for the whole run. */
export interface RivalRun {
  kase: string;
  contender: string;
  answered: number;
  errors: number;
  figures: Record<string, number>;
  /** The share of all cores taken by programs outside the benchmark, 0 to 1. */
  othersShare: number;
}

interface Spread {
  median: number;
  min: number;
  max: number;
}

/** A contender's figures in a case, over all rounds that count. */
export interface RivalSummary {
  /** The case's name; kept runs use this field name. */
  kase: string;
  contender: string;
  answered: number;
  errors: number;
  figures: Record<string, Spread>;
  rounds: number;
  /** Rounds that do not count, because the machine was busy with something else. */
  discarded: number;
}

/** A round in which other programs took more than this does not count. */
export const OTHERS_SHARE_MAX = 0.05;

/** If every round was disturbed, all of them count, and `discarded` is their number. */
export function summariseRival(runs: readonly RivalRun[]): RivalSummary {
  const [first] = runs;
  if (first === undefined) throw new Error('There is no run to summarise.');
  const quiet = runs.filter(({ othersShare }) => othersShare <= OTHERS_SHARE_MAX);
  const counted = quiet.length === 0 ? runs : quiet;
  const names = [...new Set(counted.flatMap(({ figures }) => Object.keys(figures)))];
  const figures = names.map((name) => {
    const values = counted.flatMap((run) => run.figures[name] ?? []);
    return [name, { median: median(values), min: Math.min(...values), max: Math.max(...values) }] as const;
  });
  return {
    kase: first.kase,
    contender: first.contender,
    answered: runs.reduce((sum, { answered }) => sum + answered, 0),
    errors: runs.reduce((sum, { errors }) => sum + errors, 0),
    figures: Object.fromEntries(figures),
    rounds: counted.length,
    discarded: runs.length - quiet.length,
  };
}
