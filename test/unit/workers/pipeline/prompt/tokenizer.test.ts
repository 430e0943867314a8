import { expect, it } from '@jest/globals';

import { loadTokenizer } from '../../../../../workers/pipeline/prompt/tokenizer.ts';

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

  await (await loadTokenizer()).count(Array.from({ length: 50 }, (_, index) => `${index} ${'river '.repeat(700)}`));
  clearImmediate(other);

  expect(turns).toBeGreaterThan(10);
});

it('knows nothing of a text that it was not given', async () => {
  const count = await (await loadTokenizer()).count(['a']);

  expect(() => count('b')).toThrow('not handed');
});
