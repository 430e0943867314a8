import type { Evidence } from './checker/evidence.ts';
import type { Verdict } from './checker/verdict.ts';
import type { Lab, LabOptions } from './lab/lab.ts';

/** `full`: the counts of the list of experiments; `small`: about a tenth of them, for `npm test`. */
export type Size = 'full' | 'small';

/** What only this experiment can say, beside the invariants. */
interface Findings {
  verdicts: Verdict[];
  /** Requests that Redis was made to forget; see Evidence. */
  forgotten?: readonly string[];
  /** Figures for the reader, by name. */
  figures?: Record<string, number | string>;
  /** Verdicts that need what is left at rest. */
  judge?: (evidence: Evidence) => Verdict[];
  /** Figures of what is left at rest. */
  measure?: (evidence: Evidence) => Record<string, number | string>;
}

/** One line of the list of fault experiments. */
export interface Experiment {
  /** E1. */
  name: string;
  title: string;
  lab: LabOptions;
  /** It does things to MongoDB itself. */
  needsOwnMongo?: boolean;
  /** It takes longer than all others together: it runs when it is named. */
  isLong?: boolean;
  /** `minutes`: for how long, where it is long. */
  run(lab: Lab, size: Size, minutes: number): Promise<Findings>;
}
