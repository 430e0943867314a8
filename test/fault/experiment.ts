import type { Evidence } from './checker/evidence.ts';
import type { Verdict } from './checker/verdict.ts';
import type { Lab, LabOptions } from './lab/lab.ts';

/** `full`: the counts of the list of experiments; `small`: about a tenth of them, for `npm test`. */
export type Size = 'full' | 'small';

/** How long the experiments last that take as long as they are told. */
export interface Durations {
  /** E17. */
  minutes: number;
  /** E21: the provider's outage; it stands for one of 10 minutes. */
  outageSeconds: number;
}

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
  run(lab: Lab, size: Size, durations: Durations): Promise<Findings>;
}
