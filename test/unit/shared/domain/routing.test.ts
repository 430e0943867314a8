import { describe, expect, it } from '@jest/globals';

import { orderTargets } from '../../../../shared/domain/routing.ts';
import type { Target } from '../../../../shared/domain/routing.ts';

const target = (model: string, weight: number, priority = 1): Target => ({
  provider: 'any',
  model,
  weight,
  priority,
  contextWindow: 1_000,
});

const models = (targets: readonly Target[]) => targets.map(({ model }) => model);

/** Evenly spread numbers, the same in every run. */
function spread(): () => number {
  let state = 0;
  return () => (state = (state + 0.618_033_988_749_895) % 1);
}

describe('the order of targets', () => {
  it('is that of the priorities, lowest number first, whatever the weights', () => {
    const targets = [target('last', 100, 9), target('first', 1, 0), target('middle', 50, 3)];

    expect(models(orderTargets(targets, spread()))).toEqual(['first', 'middle', 'last']);
  });

  it('gives targets of one priority the first place in proportion to their weights', () => {
    const targets = [target('a', 6), target('b', 3), target('c', 1)];
    const random = spread();
    const firsts: Record<string, number> = { a: 0, b: 0, c: 0 };

    for (let draw = 0; draw < 10_000; draw += 1) {
      const [first] = models(orderTargets(targets, random));
      firsts[String(first)] = (firsts[String(first)] ?? 0) + 1;
    }

    expect(firsts['a']).toBeGreaterThan(5_700);
    expect(firsts['a']).toBeLessThan(6_300);
    expect(firsts['b']).toBeGreaterThan(2_700);
    expect(firsts['b']).toBeLessThan(3_300);
  });

  it('the order of targets names every target exactly once', () => {
    const targets = [target('a', 1), target('b', 0), target('c', 5, 2), target('d', 0, 2)];

    for (const draw of [0, 0.5, 0.999_999]) {
      expect(models(orderTargets(targets, () => draw)).sort()).toEqual(['a', 'b', 'c', 'd']);
    }
  });

  it.each([0, 0.5, 0.999_999])('puts weight 0 behind every other of its priority (draw %d)', (draw) => {
    const targets = [target('zero', 0), target('a', 1), target('b', 1)];

    expect(models(orderTargets(targets, () => draw)).at(-1)).toBe('zero');
  });

  it('the order of targets does not change what it was given', () => {
    const targets = Object.freeze([target('a', 1, 2), target('b', 1, 1)]);

    orderTargets(targets, spread());

    expect(models(targets)).toEqual(['a', 'b']);
  });
});
