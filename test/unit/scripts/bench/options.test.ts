import { describe, expect, it } from '@jest/globals';

import { parseBenchOptions } from '../../../../scripts/bench/options.ts';

const namesOf = (args: string[]) => parseBenchOptions(args).cases.map(({ name }) => name);

describe('parseBenchOptions', () => {
  it('measures Parley beside the floor in three rounds', () => {
    expect(parseBenchOptions([])).toMatchObject({
      systems: ['floor', 'parley'],
      rounds: 3,
      seconds: 6,
      profile: undefined,
      isKept: false,
    });
    expect(namesOf([])).toEqual(['complete-1', 'complete-32', 'stream-32', 'live-100']);
  });

  it('takes single settings over those of --quick', () => {
    expect(parseBenchOptions(['--quick', '--rounds', '2'])).toMatchObject({ rounds: 2, seconds: 3 });
  });

  it('runs all cases beside the other gateways', () => {
    expect(parseBenchOptions(['--rivals']).systems).toEqual(['portkey', 'floor', 'parley']);
    expect(namesOf(['--rivals'])).toContain('prompt-200k');
  });

  it('runs the named cases and systems, with or without --rivals', () => {
    const args = ['--cases', 'live-100, complete-1', '--systems', 'parley'];

    expect(namesOf(args)).toEqual(['live-100', 'complete-1']);
    expect(parseBenchOptions(args).systems).toEqual(['parley']);
    expect(parseBenchOptions(['--rivals', ...args])).toEqual(parseBenchOptions(args));
  });

  it('profiles Parley alone in one short round', () => {
    expect(parseBenchOptions(['--profile', 'worker'])).toMatchObject({
      ...{ systems: ['parley'], rounds: 1, seconds: 3, profile: 'worker' },
    });
  });

  it.each([
    [['--profile', 'redis'], /^--profile must be ingress or worker, not "redis"\.$/],
    [['--rounds', '0'], /^--rounds must be/],
    [['--seconds', '-1'], /seconds/],
    [['--cases', 'live-7'], /^--cases takes complete-32/],
    [['--systems', 'kong'], /^--systems takes portkey/],
  ])('refuses %j in one sentence', (args, sentence) => {
    expect(() => parseBenchOptions(args)).toThrow(sentence);
  });
});
