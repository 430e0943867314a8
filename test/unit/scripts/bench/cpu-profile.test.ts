import { describe, expect, it } from '@jest/globals';

import { costsOf } from '../../../../scripts/bench/cpu-profile.ts';

const frame = (functionName: string, url = '') => ({ functionName, url });

/** admit → ioredis → a system call, and idle time. */
const NODES = [
  { id: 1, callFrame: frame('(root)'), children: [2, 5] },
  { id: 2, callFrame: frame('admit', 'file:///home/me/parley/api/admission/admission.ts'), children: [3] },
  { id: 3, callFrame: frame('write', 'file:///home/me/parley/node_modules/ioredis/built/Redis.js'), children: [4] },
  { id: 4, callFrame: frame('writev'), children: [] },
  { id: 5, callFrame: frame('(idle)') },
];

describe('costsOf', () => {
  it('counts what Node.js does for a package as the cost of that package', () => {
    const { byModule } = costsOf(
      { nodes: NODES, startTime: 5_000, samples: [2, 3, 4], timeDeltas: [100, 100, 200] },
      0,
      10,
    );

    expect(byModule).toEqual([
      { name: 'ioredis', share: 0.75 },
      { name: 'api/admission', share: 0.25 },
    ]);
  });

  it('leaves idle time out of the whole', () => {
    const { byFunction } = costsOf({ nodes: NODES, startTime: 5_000, samples: [5, 3], timeDeltas: [900, 100] }, 0, 10);

    expect(byFunction).toEqual([{ name: 'write ioredis/built/Redis.js', share: 1 }]);
  });

  it('leaves out the time it took to start', () => {
    const { byFunction } = costsOf(
      { nodes: NODES, startTime: 5_000, samples: [2, 4], timeDeltas: [1_000, 2_000] },
      7_000,
      10,
    );

    expect(byFunction).toEqual([{ name: 'writev', share: 1 }]);
  });
});
