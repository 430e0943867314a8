import { expect, it } from '@jest/globals';

import { workerKilled } from '../fault/experiments/e01-worker-killed.ts';
import { twoDeliveries } from '../fault/experiments/e03-two-deliveries.ts';
import { EXPERIMENT_MS, faultsOf } from '../support/small-experiment.ts';

it.each([workerKilled, twoDeliveries])(
  '$name in small: $title',
  async (experiment) => {
    expect(await faultsOf(experiment)).toEqual([]);
  },
  EXPERIMENT_MS,
);
