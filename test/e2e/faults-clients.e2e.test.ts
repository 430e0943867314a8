import { expect, it } from '@jest/globals';

import { clientLeaves } from '../fault/experiments/e04-client-leaves.ts';
import { smallBalance } from '../fault/experiments/e07-small-balance.ts';
import { subscribersKilled } from '../fault/experiments/e12-subscribers-killed.ts';
import { windowEdges } from '../fault/experiments/e14-window-edges.ts';
import { EXPERIMENT_MS, faultsOf } from '../support/small-experiment.ts';

it.each([clientLeaves, smallBalance, subscribersKilled, windowEdges])(
  '$name in small: $title',
  async (experiment) => {
    expect(await faultsOf(experiment)).toEqual([]);
  },
  EXPERIMENT_MS,
);
