import { expect, it } from '@jest/globals';

import { workerKilled } from '../experiments/e01-worker-killed.ts';
import { twoDeliveries } from '../experiments/e03-two-deliveries.ts';
import { EXPERIMENT_MS, faultsOf } from './small-experiment.ts';

it.each([workerKilled, twoDeliveries])(
  '$name in small: $title',
  async (experiment) => {
    expect(await faultsOf(experiment)).toEqual([]);
  },
  EXPERIMENT_MS,
);
