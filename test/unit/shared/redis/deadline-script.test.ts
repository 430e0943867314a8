import { describe, expect, it } from '@jest/globals';

import { createShardClocks } from '../../../../shared/redis/scripts.ts';

const SHARD = 1;

describe('the clock of a shard', () => {
  it('is unknown until the shard has answered', () => {
    const clocks = createShardClocks();
    clocks.learn(0, 5_000, 10, 20);

    expect(clocks.at(SHARD, 100)).toBeUndefined();
  });

  it.each<[string, [shown: number, sentAt: number, receivedAt: number][], number]>([
    ['is ahead by what the first answer allows', [[5_000, 10, 20]], 4_990],
    [
      'is known better by a faster answer',
      [
        [5_000, 10, 400],
        [6_000, 1_100, 1_101],
      ],
      4_900,
    ],
    [
      'is no better known by a slow answer',
      [
        [5_000, 10, 20],
        [7_000, 1_100, 2_020],
      ],
      4_990,
    ],
    [
      'follows a clock that is set ahead',
      [
        [5_000, 10, 20],
        [95_000, 100, 110],
      ],
      94_890,
    ],
    [
      'follows a clock that is set back',
      [
        [5_000, 10, 20],
        [1_000, 100, 110],
      ],
      900,
    ],
  ])('%s', (_name, answers, ahead) => {
    const clocks = createShardClocks();
    for (const answer of answers) clocks.learn(SHARD, ...answer);

    expect(clocks.at(SHARD, 0)).toBe(ahead);
  });
});
