import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

import { loadTokenizer } from '../../../../workers/pipeline/fit-window.ts';

async function countOf(text: string): Promise<number> {
  return (await (await loadTokenizer()).count([text]))(text);
}

// Counted with OpenAI's own tokenizer for o200k_base.
it.each([
  ['', 0],
  ['Hello world', 2],
  ['The quick brown fox jumps over the lazy dog.', 10],
  ['<|endoftext|>', 7],
])('counts %j as %d tokens', async (text, tokens) => {
  expect(await countOf(text)).toBe(tokens);
});

/** As it was sent in one piece; the tokenizer cuts runs of 64 characters only. */
const inOnePiece = (text: string) =>
  countTokens(text, { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() });

const SNIPPETS = [
  ...[' ', '  ', '   ', '\n', ' \n', '\r\n', '\t', '\u00a0', '\u2028', '\u3000', '\ufeff', '\u0001', '\u200b'],
  ...['a', 'The', 'river', 'sEA', "'s", "'LL", "don't", '.', ',', '!?', '//', '(no.', '$49.90', '1234567', '٣٤', '½'],
  ...[
    'über',
    'e\u0301',
    'Ж',
    'ქართ',
    '日本',
    'ไทย',
    'हिं',
    '👍🏽',
    '👨‍👩‍👧',
    '\ud83d',
    '\udc4d',
    'ǅ',
    'ʰ',
    'xyzzyq',
    '<|endoftext|>',
  ],
];

it('counts a text word by word as it counts the whole', async () => {
  const tokenizer = await loadTokenizer();
  const text = fc.array(fc.oneof(fc.constantFrom(...SNIPPETS), fc.string({ unit: 'binary', maxLength: 4 })), {
    maxLength: 30,
  });
  await fc.assert(
    fc.asyncProperty(text, async (parts) => {
      const whole = parts.join('');
      fc.pre(!/\S{64}|\s{64}/u.test(whole));
      // Twice: the second time it knows the words.
      for (let times = 0; times < 2; times += 1)
        expect((await tokenizer.count([whole]))(whole)).toBe(inOnePiece(whole));
    }),
    { numRuns: 500 },
  );
});

it('counts a text of more words than it keeps', async () => {
  const words = Array.from({ length: 50_000 }, (_, index) => `w${index.toString(36)}`);

  const sum = words.slice(1).reduce((tokens, word) => tokens + inOnePiece(` ${word}`), inOnePiece(words[0] ?? ''));

  expect(await countOf(words.join(' '))).toBe(sum);
});

it('counts a run without a break almost as if it were not cut', async () => {
  const run = 'internationalization'.repeat(20);

  const tokens = await countOf(run);

  expect(tokens).toBeGreaterThanOrEqual(40);
  expect(tokens).toBeLessThan(40 * 1.3);
});

it('lets other work run in between', async () => {
  let turns = 0;
  // By turns of the event loop, not by time: a timer on a busy machine is late.
  const work = () => {
    turns += 1;
    other = setImmediate(work);
  };
  let other = setImmediate(work);

  // Words that nobody has seen take the time.
  const textOf = (index: number) => Array.from({ length: 500 }, (_, word) => `x${index}y${word}z`).join(' ');
  const tokenizer = await loadTokenizer();
  await tokenizer.count(Array.from({ length: 50 }, (_, index) => textOf(index)));
  const withSpaces = turns;
  // A text of short words and not one space, as an answer may be.
  await tokenizer.countText('a\t'.repeat(50_000));
  clearImmediate(other);

  expect(withSpaces).toBeGreaterThan(10);
  expect(turns - withSpaces).toBeGreaterThan(10);
});

it('counts words alike that differ in one letter, whatever it has kept of others', async () => {
  const words = Array.from({ length: 3_000 }, (_, index) => `${'abcdefghij'.slice(0, index % 11)}${index}`);

  for (let times = 0; times < 2; times += 1)
    for (const word of words) expect(await countOf(`a ${word}`)).toBe(inOnePiece(`a ${word}`));
});
