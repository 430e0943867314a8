import { describe, expect, it } from '@jest/globals';

import { bytesOf } from '../../../../shared/contracts/parse.ts';

describe('bytesOf', () => {
  it.each([
    ['plain text', 'a'.repeat(1_000)],
    ['CJK', '漢字'.repeat(1_000)],
    ['controls', '\u0001'.repeat(1_000)],
    ['lines and quotes', '"\\\n'.repeat(1_000)],
    ['emoji', '🙂'.repeat(1_000)],
    ['halves of characters', '\ud800'.repeat(1_000)],
  ])('is the length of a text as JSON, but for its quotes: %s', (_which, text) => {
    const written = Buffer.byteLength(JSON.stringify(text));

    expect(written - bytesOf(text)).toBeLessThanOrEqual(2);
    expect(bytesOf({ messages: [{ [text]: text }] })).toBeGreaterThanOrEqual(2 * (written - 2));
  });
});
