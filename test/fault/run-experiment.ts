import { checkEvidence } from './checker/check-evidence.ts';
import type { Evidence } from './checker/evidence.ts';
import type { Verdict } from './checker/verdict.ts';
import type { Durations, Experiment, Size } from './experiment.ts';
import { openLab } from './lab/open-lab.ts';
import type { LabPlace } from './lab/open-lab.ts';

export interface Outcome {
  name: string;
  /** I1-I9, then the experiment's own. */
  verdicts: Verdict[];
  figures: Record<string, number | string>;
  evidence: Evidence | undefined;
  seconds: number;
}

/** For `npm test`, which runs nothing that takes long. */
const SMALL: Durations = { minutes: 0, outageSeconds: 20 };

/** Runs one experiment against processes of its own and judges what is left. Nothing runs any more when it resolves. */
export async function runExperiment(
  experiment: Experiment,
  place: LabPlace,
  size: Size,
  durations: Durations = SMALL,
): Promise<Outcome> {
  const startedAt = performance.now();
  const outcome: Outcome = { name: experiment.name, verdicts: [], figures: {}, evidence: undefined, seconds: 0 };
  try {
    const lab = await openLab(place, experiment.lab);
    try {
      const { verdicts, forgotten = [], figures = {}, judge, measure } = await experiment.run(lab, size, durations);
      const evidence = { ...(await lab.gather()), forgotten: new Set(forgotten) };
      outcome.evidence = evidence;
      outcome.figures = { ...figures, ...measure?.(evidence) };
      outcome.verdicts = [...checkEvidence(evidence), ...verdicts, ...(judge?.(evidence) ?? [])];
    } finally {
      await lab.close();
    }
  } catch (error) {
    place.signal.throwIfAborted();
    outcome.verdicts.push({ name: 'run', faults: [error instanceof Error ? error.message : String(error)] });
  }
  outcome.seconds = (performance.now() - startedAt) / 1000;
  return outcome;
}

export function hasPassed({ verdicts }: Outcome): boolean {
  return verdicts.every(({ faults }) => faults.length === 0);
}
