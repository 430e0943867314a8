import { expect, it } from '@jest/globals';
import { createBoundedMap } from '../../../../scripts/simulated-provider/bounded-map.ts';

it('drops the oldest key, not the one that was set again last', () => {
  const map = createBoundedMap<number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('a', 3);
  map.set('c', 4);

  expect([...map.entries()]).toEqual([
    ['b', 2],
    ['c', 4],
  ]);
});
