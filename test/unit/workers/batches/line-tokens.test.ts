import { describe, expect, it } from '@jest/globals';

import { createChance } from '../../../support/chance.ts';
import { createLineTokens } from '../../../../workers/batches/line-state.ts';

const MOST = 4_196;

describe('what the next line of a batch counts', () => {
  it('is what it can take at most where no line has ended', () => {
    expect(createLineTokens().next(MOST, Infinity)).toBe(MOST);
  });

  it('is twice what one line took, and comes near to it with more of the same', () => {
    const tokens = createLineTokens();
    const counts = Array.from({ length: 16 }, () => {
      tokens.note(100);
      return tokens.next(MOST, Infinity);
    });
    expect([counts[0], counts[3], counts[15]]).toEqual([200, 150, 125]);
  });

  it('has room in the limit for what is not known of it, and is no less than what lines took', () => {
    const tokens = createLineTokens();
    expect(tokens.next(MOST, 1_000)).toBe(1_000);
    tokens.note(700);
    expect(tokens.next(MOST, 1_000)).toBe(1_000);
    expect(tokens.next(MOST, 500)).toBe(700);
    expect(tokens.next(MOST, -5)).toBe(700);
  });

  it('is never more than it can take', () => {
    const tokens = createLineTokens();
    tokens.note(3_000);
    expect(tokens.next(MOST, Infinity)).toBe(MOST);
  });

  it('has the history of entities, which only lines that have ended tell', () => {
    const tokens = createLineTokens();
    expect(tokens.next(200, Infinity, true)).toBe(200);
    for (let line = 0; line < 16; line += 1) tokens.note(6_000);
    expect(tokens.next(200, Infinity, true)).toBe(7_500);
    expect(tokens.next(200, Infinity)).toBe(200);
  });

  it.each([
    ['alike', () => 500],
    ['of any length', (chance: number) => 1 + chance * 4_000],
    ['mostly short', (chance: number) => (chance < 0.9 ? 20 : 2_000)],
  ])('is as much as lines take together that run at once: %s', (_, taken) => {
    const chance = createChance(7);
    const tokens = createLineTokens();
    let [taking, counted] = [0, 0];
    for (let group = 0; group < 200; group += 1) {
      const count = tokens.next(MOST, Infinity);
      const lines = Array.from({ length: 16 }, () => taken(chance.next()));
      taking += lines.reduce((sum, line) => sum + line, 0);
      counted += count * lines.length;
      lines.forEach(tokens.note);
    }
    expect(taking).toBeLessThan(counted);
    // Answers that differ a hundredfold need the most.
    expect(counted).toBeLessThan(taking * 5);
  });

  it('follows a batch whose lines become long', () => {
    const tokens = createLineTokens();
    for (let line = 0; line < 100; line += 1) tokens.note(20);
    tokens.note(4_000);
    expect(tokens.next(MOST, Infinity)).toBeGreaterThan(1_200);
    for (let line = 0; line < 16; line += 1) tokens.note(4_000);
    expect(tokens.next(MOST, Infinity)).toBeGreaterThan(3_000);
  });
});
