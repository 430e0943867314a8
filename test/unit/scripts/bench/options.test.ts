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
      rivals: expect.anything(),
      stateful: expect.anything(),
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
      rivals: expect.anything(),
      stateful: expect.anything(),
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

  it('measures state of every system that it can start, or of one that runs already', () => {
    const all = parseBenchOptions(['stateful']);
    const { stateful } = parseBenchOptions([
      ...['stateful', '--systems', 'none', '--adapter', 'mine.json', '--measures', 'limits, drift', '--quick'],
      ...['--provider-port', '8090'],
    ]);

    expect(all).toMatchObject({
      other: 'stateful',
      stateful: { systems: ['parley', 'portkey', 'litellm'], size: 'full' },
    });
    expect(all.stateful.measures).toHaveLength(7);
    expect(stateful).toMatchObject({ systems: [], adapters: ['mine.json'], measures: ['limits', 'drift'] });
    expect(stateful).toMatchObject({ size: 'smoke', providerPort: 8_090 });
    expect(() => parseBenchOptions(['stateful', '--systems', 'floor'])).toThrow(
      '--systems takes parley, portkey, litellm',
    );
  });

  it.each([
    [['--only', 'both'], /^--only must be complete or stream, not "both"\.$/],
    [['--profile', 'redis'], /^--profile must be ingress or worker, not "redis"\.$/],
    [['--clients', '1,x'], /^--clients must be a whole number from 1 to 10000, not "x"\.$/],
    [['--rounds', '0'], /^--rounds must be/],
    [['--seconds', '-1'], /seconds/],
    [['stateful', '--quick', '--keep'], /^--keep keeps measurements/],
  ])('refuses %j in one sentence', (args, sentence) => {
    expect(() => parseBenchOptions(args)).toThrow(sentence);
  });

  it('runs all cases beside the other gateways, or those that are named', () => {
    const all = parseBenchOptions(['--rivals']);
    const { rivals } = parseBenchOptions(['--rivals', '--cases', 'live-100, complete-1', '--systems', 'parley']);

    expect(all.other).toBe('rivals');
    expect(all.rivals.systems).toEqual(['pass-through', 'portkey', 'floor', 'parley']);
    expect(rivals.cases.map(({ name }) => name)).toEqual(['live-100', 'complete-1']);
    expect(rivals.systems).toEqual(['parley']);
  });

  it('takes any server that speaks OpenAI’s protocol as a target', () => {
    const { rivals } = parseBenchOptions(['--rivals', '--target', 'litellm=http://127.0.0.1:4000/v1/,gpt-x']);

    expect(rivals.targets).toEqual([{ name: 'litellm', url: 'http://127.0.0.1:4000/v1', model: 'gpt-x' }]);
  });

  it.each([
    [['--rivals', '--cases', 'live-7'], '--cases takes complete-32'],
    [['--rivals', '--target', 'litellm'], '--target takes name=URL'],
  ])('says what is wrong with %j', (args, message) => {
    expect(() => parseBenchOptions(args)).toThrow(message);
  });
});
