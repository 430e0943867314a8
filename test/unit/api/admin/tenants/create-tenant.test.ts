import { expect, it } from '@jest/globals';

import { chooseShard } from '../../../../../api/admin/tenants/tenants-endpoints.ts';

it('chooses the shard with the fewest tenants', () => {
  expect(chooseShard('ten_x', [7, 3, 4])).toBe(1);
});

it('fills shards that were added before those that have tenants', () => {
  const counts = [10, 10, 0, 0];
  for (let index = 0; index < 20; index += 1) {
    const shard = chooseShard(`ten_${index}`, counts);
    counts[shard] = (counts[shard] ?? 0) + 1;
  }
  expect(counts).toEqual([10, 10, 10, 10]);
});

it('spreads tenants that are made at the same moment over all shards with the fewest', () => {
  const counts = [0, 0, 0, 0];
  for (let index = 0; index < 4_000; index += 1) {
    const shard = chooseShard(`ten_${index}`, [5, 5, 5, 5]);
    counts[shard] = (counts[shard] ?? 0) + 1;
  }
  for (const count of counts) expect(count).toBeGreaterThan(850);
});

it('knows one shard only when there is one', () => {
  expect(chooseShard('ten_x', [12])).toBe(0);
});
