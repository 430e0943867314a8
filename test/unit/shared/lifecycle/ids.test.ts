import { expect, it } from '@jest/globals';

import { newId, randomBase62 } from '../../../../shared/lifecycle/ids.ts';

it('writes ids as the interface has them', () => {
  for (let count = 0; count < 1_000; count += 1) expect(newId('req')).toMatch(/^req_[0-9A-Za-z]{24}$/);
});

it('draws every character equally often', () => {
  const counts = new Map<string, number>();
  for (const character of randomBase62(124_000)) counts.set(character, (counts.get(character) ?? 0) + 1);

  expect(counts.size).toBe(62);
  for (const count of counts.values()) {
    // 2,000 each; six standard deviations.
    expect(count).toBeGreaterThan(1_730);
    expect(count).toBeLessThan(2_270);
  }
});
