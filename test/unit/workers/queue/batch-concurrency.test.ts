import { describe, expect, it } from '@jest/globals';

import { nextPlaces, placesOf } from '../../../../workers/queue/open-queue-workers.ts';

const MAX = 64;
const shared = (busy: number, meanMs = 0) => ({ busy, isShared: true, meanMs });
const alone = (busy: number, meanMs = 0) => ({ busy, isShared: false, meanMs });

/** After so many looks at the same load. */
function after(looks: number, look: Parameters<typeof nextPlaces>[1], from = MAX): number {
  let places = from;
  for (let count = 0; count < looks; count += 1) places = nextPlaces(places, look, MAX);
  return places;
}

describe('the places of a batch queue', () => {
  it('become more, one by one, while the process has time to spare beside other requests', () => {
    expect(nextPlaces(10, shared(0.1), MAX)).toBe(11);
    expect(nextPlaces(MAX, shared(0), MAX)).toBe(MAX);
  });

  it('become fewer at once when other requests need the process, but never none', () => {
    expect(nextPlaces(64, shared(0.7), MAX)).toBe(32);
    expect(after(6, shared(1))).toBe(1);
  });

  it('stay where the process is neither busy nor idle', () => {
    expect(nextPlaces(20, shared(0.5), MAX)).toBe(20);
    expect(nextPlaces(20, alone(0.85), MAX)).toBe(20);
  });

  it('use more of the process while nobody waits for anything else', () => {
    expect(nextPlaces(20, alone(0.7), MAX)).toBe(24);
    expect(nextPlaces(20, shared(0.7), MAX)).toBe(10);
  });

  it('let twenty lines a second end, however busy the machine is', () => {
    expect(after(20, shared(1, 250))).toBe(5);
    expect(after(20, alone(1, 1_000))).toBe(20);
    expect(after(20, shared(1, 30_000))).toBe(MAX);
    expect(after(1, shared(0, 1_000), 1)).toBe(20);
  });
});

describe('the places of several shards', () => {
  it('are for those whose lines run, but for one each', () => {
    const idle = Array<boolean>(7).fill(true);
    expect(placesOf(MAX, [false, ...idle])).toEqual([57, ...Array<number>(7).fill(1)]);
    expect(placesOf(20, [false, true, false, true])).toEqual([9, 1, 9, 1]);
    expect(placesOf(1, [false, true])).toEqual([1, 1]);
  });

  it('are divided among all while none runs any line, so that they are never more together', () => {
    expect(placesOf(MAX, [true])).toEqual([64]);
    expect(placesOf(MAX, [true, true, true])).toEqual([21, 21, 21]);
  });
});
