import { expect, it } from '@jest/globals';

import { estimateUsage } from '../../../../../workers/pipeline/prompt/fit-window.ts';

it('counts prompt and answer with a real tokenizer and says that it did', async () => {
  const usage = await estimateUsage([{ role: 'user', content: 'Hello world' }], 'Hello world, hello world');

  expect(usage).toEqual({ promptTokens: 2 + 4, completionTokens: 5, estimated: true });
});

it('counts the markers of a chat format as the ordinary text they are', async () => {
  const { completionTokens } = await estimateUsage([], 'before <|endoftext|> after');

  expect(completionTokens).toBeGreaterThan(3);
});

it.each([
  ['one long word', 'a'.repeat(16_000)],
  ['spaces', ' '.repeat(16_000)],
  ['emoji', '😀'.repeat(16_000)],
  ['digits', '7'.repeat(16_000)],
  ['line breaks', '\n'.repeat(16_000)],
  ['CJK without spaces', '漢字'.repeat(8_000)],
])('does not stop the process for a message of %s', async (_what, content) => {
  const startedAt = performance.now();

  await estimateUsage([{ role: 'user', content }], content);

  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
