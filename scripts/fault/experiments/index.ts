import type { Experiment } from '../experiment.ts';
import { workerKilled } from './e01-worker-killed.ts';
import { workerPaused } from './e02-worker-paused.ts';
import { twoDeliveries } from './e03-two-deliveries.ts';
import { clientLeaves } from './e04-client-leaves.ts';

/** In the order in which they run. */
export const EXPERIMENTS: readonly Experiment[] = [workerKilled, workerPaused, twoDeliveries, clientLeaves];
