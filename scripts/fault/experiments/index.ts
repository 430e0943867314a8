import type { Experiment } from '../experiment.ts';
import { workerKilled } from './e01-worker-killed.ts';

/** In the order in which they run. */
export const EXPERIMENTS: readonly Experiment[] = [workerKilled];
