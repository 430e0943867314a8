import type { Feature, Missing } from './system.ts';
import type { Lab } from './lab.ts';

/** Whether a promise was kept, and what was seen. */
export interface Verdict {
  promise: string;
  isKept: boolean;
  /** What was seen. */
  seen: string;
}

interface Finding {
  /** By name, in the table's order. */
  figures: Record<string, number | string>;
  verdicts: Verdict[];
}

/** `failed`: the measure itself broke, which says nothing else about the system. */
export type Outcome = ({ kind: 'measured' } & Finding) | Missing | { kind: 'failed'; why: string };

export interface SystemResult {
  name: string;
  version: string;
  notes: readonly string[];
  outcomes: Record<string, Outcome>;
}

/** One question of the benchmark. */
export interface Measure {
  /** The name used by `--measures`. */
  name: string;
  title: string;
  /** Systems that lack one of these are not measured. */
  needs: readonly Feature[];
  run(lab: Lab): Promise<Finding>;
}

export function verdict(promise: string, isKept: boolean, seen: string): Verdict {
  return { promise, isKept, seen };
}

/** Rounds figures for people to read. */
export function rounded(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
