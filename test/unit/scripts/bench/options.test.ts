import { describe, expect, it } from '@jest/globals';

import { parseBenchOptions } from '../../../../scripts/bench/options.ts';

describe('parseBenchOptions', () => {
  it('measures both modes with 1, 32 and 128 clients in three rounds', () => {
    expect(parseBenchOptions([])).toEqual({
      modes: ['complete', 'stream'],
      clients: [1, 32, 128],
      rounds: 3,
      seconds: 6,
      profile: undefined,
      other: undefined,
      rows: 200_000,
    });
  });

  it('takes single settings over those of --quick', () => {
    expect(parseBenchOptions(['--quick', '--clients', '8, 16', '--only', 'stream', '--rounds', '2'])).toEqual({
      modes: ['stream'],
      clients: [8, 16],
      rounds: 2,
      seconds: 3,
      profile: undefined,
      other: undefined,
      rows: 200_000,
    });
  });

  it('measures something else when it is named', () => {
    expect(parseBenchOptions(['batch'])).toMatchObject({ other: 'batch', clients: [1, 8, 32] });
    expect(parseBenchOptions(['usage'])).toMatchObject({ other: 'usage' });
    expect(() => parseBenchOptions(['speed'])).toThrow('batch or usage or reconcile');
    expect(() => parseBenchOptions(['batch', 'usage'])).toThrow('One benchmark at a time');
  });

  it('profiles with 32 clients', () => {
    expect(parseBenchOptions(['--profile', 'worker'])).toMatchObject({ clients: [32], rounds: 1, profile: 'worker' });
  });

  it.each([
    [['--only', 'both'], /^--only must be complete or stream, not "both"\.$/],
    [['--profile', 'redis'], /^--profile must be ingress or worker, not "redis"\.$/],
    [['--clients', '1,x'], /^--clients must be a whole number from 1 to 10000, not "x"\.$/],
    [['--rounds', '0'], /^--rounds must be/],
    [['--seconds', '-1'], /seconds/],
  ])('refuses %j in one sentence', (args, sentence) => {
    expect(() => parseBenchOptions(args)).toThrow(sentence);
  });
});
