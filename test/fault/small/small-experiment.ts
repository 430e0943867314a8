import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { renderFaults } from '../checker/verdict.ts';
import type { Experiment } from '../experiment.ts';
import { runExperiment } from '../run-experiment.ts';
import { mongoUri } from '../../support/stores.ts';

/** Long enough on a machine that is busy with other tests. */
export const EXPERIMENT_MS = 120_000;

/**
 * An experiment of `npm run test:fault` with about a tenth of its requests, and the test run's MongoDB: everything that
 * speaks against the invariants I1-I9 and against its own promises.
 */
export async function faultsOf(experiment: Experiment): Promise<string[]> {
  const dataDir = await mkdtemp(join(tmpdir(), `parley-${experiment.name}-`));
  try {
    const place = { dataDir, signal: AbortSignal.timeout(EXPERIMENT_MS), mongodbUri: mongoUri('fault') };
    const { verdicts } = await runExperiment(experiment, place, 'small');
    return verdicts.flatMap(renderFaults);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}
