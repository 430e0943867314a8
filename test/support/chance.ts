/** A seeded random generator: the same sequence every time. */
export interface Chance {
  /** Between 0 and 1. */
  next(): number;
  /** From 0 to just under `below`. */
  below(below: number): number;
  /** True with this probability. */
  is(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
}

/** mulberry32. */
export function createChance(seed: number): Chance {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    next,
    below,
    is: (probability) => next() < probability,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('There is nothing to pick from.');
      return item;
    },
  };
}
