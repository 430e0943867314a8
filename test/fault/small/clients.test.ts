import { expect, it } from '@jest/globals';

import { clientLeaves } from '../experiments/e04-client-leaves.ts';
import { smallBalance } from '../experiments/e07-small-balance.ts';
import { subscribersKilled } from '../experiments/e12-subscribers-killed.ts';
import { usageShapes } from '../experiments/r6-usage-shapes.ts';
import { windowEdges } from '../experiments/e14-window-edges.ts';
import { EXPERIMENT_MS, faultsOf } from './small-experiment.ts';

it.each([clientLeaves, smallBalance, subscribersKilled, windowEdges, usageShapes])(
  '$name in small: $title',
  async (experiment) => {
    expect(await faultsOf(experiment)).toEqual([]);
  },
  EXPERIMENT_MS,
);
