import type { Feature, Missing } from './system.ts';
import type { Lab } from './lab.ts';

/** A finding that a promise of this kind is kept, or what broke it. */
export interface Verdict {
  promise: string;
  isKept: boolean;
  /** What was seen. */
  seen: string;
}

interface Finding {
  /** By name, in the order of the table. */
  figures: Record<string, number | string>;
  verdicts: Verdict[];
}

/** `failed`: the measure itself broke, which says nothing about the system but that. */
export type Outcome = ({ kind: 'measured' } & Finding) | Missing | { kind: 'failed'; why: string };

export interface SystemResult {
  name: string;
  version: string;
  notes: readonly string[];
  outcomes: Record<string, Outcome>;
}

/** One question of the benchmark. */
export interface Measure {
  /** As `--measures` names it. */
  name: string;
  title: string;
  /** A system without them is not asked. */
  needs: readonly Feature[];
  run(lab: Lab): Promise<Finding>;
}

export function verdict(promise: string, isKept: boolean, seen: string): Verdict {
  return { promise, isKept, seen };
}

/** For figures that people read. */
export function rounded(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
