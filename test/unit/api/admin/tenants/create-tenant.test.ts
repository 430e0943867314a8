import { expect, it } from '@jest/globals';

import { shardOf } from '../../../../../api/admin/tenants/create-tenant.ts';

it('spreads tenants evenly over the shards', () => {
  const counts = [0, 0, 0, 0];
  for (let index = 0; index < 4_000; index += 1) {
    const shard = shardOf(`ten_${index}`, 4);
    counts[shard] = (counts[shard] ?? 0) + 1;
  }
  for (const count of counts) {
    expect(count).toBeGreaterThan(850);
    expect(count).toBeLessThan(1_150);
  }
});

it('knows one shard only when there is one', () => {
  expect(shardOf('ten_x', 1)).toBe(0);
});
