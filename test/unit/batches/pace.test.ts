import { describe, expect, it } from '@jest/globals';

import { nextPlaces } from '../../../workers/batches/pace.ts';

const MAX = 64;

describe('the places of a batch lane', () => {
  it('become more, one by one, while the process has time to spare', () => {
    expect(nextPlaces(10, 0.1, MAX)).toBe(11);
    expect(nextPlaces(MAX, 0, MAX)).toBe(MAX);
  });

  it('become fewer at once when it is busy, but never none', () => {
    expect(nextPlaces(64, 0.9, MAX)).toBe(44);
    expect(nextPlaces(1, 1, MAX)).toBe(1);
  });

  it('stay while it is neither', () => {
    expect(nextPlaces(20, 0.5, MAX)).toBe(20);
  });

  it('come back to one within two seconds of a full load', () => {
    let places = MAX;
    for (let look = 0; look < 20; look += 1) places = nextPlaces(places, 1, MAX);
    expect(places).toBe(1);
  });
});
