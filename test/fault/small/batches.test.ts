import { expect, it } from '@jest/globals';

import { providerOutage } from '../experiments/e21-provider-outage.ts';
import { EXPERIMENT_MS, faultsOf } from './small-experiment.ts';

it(
  'E21: a batch outlasts its provider’s outage without a failed line',
  async () => {
    expect(await faultsOf(providerOutage)).toEqual([]);
  },
  EXPERIMENT_MS,
);
