import { describe, expect, it } from '@jest/globals';
import { countPromptTokens, splitTokens } from '../../../../scripts/simulated-provider/tokens.ts';
import { writeText } from '../../../../scripts/simulated-provider/write-text.ts';

describe('splitTokens', () => {
  it.each([
    ['', 0],
    ['one', 1],
    ['one two', 2],
    ['12345678', 1],
    ['123456789', 2],
    ['  two spaces', 3],
    ['😀😀😀😀😀😀😀😀', 1],
    ['\n\n', 2],
    ['\ud800 lone', 2],
  ])('splits %j into %d tokens that give it back', (text, count) => {
    const tokens = splitTokens(text);

    expect(tokens).toHaveLength(count);
    expect(tokens.join('')).toBe(text);
  });

  it('counts one token for each generated word', () => {
    for (let seed = 0; seed < 50; seed++) expect(splitTokens(writeText(seed, 333))).toHaveLength(333);
  });
});

describe('countPromptTokens', () => {
  it('counts 3, and for each message 4 and a quarter of its bytes', () => {
    const messages = ['12345', '😀', ''].map((text) => ({ role: 'user', text }));

    expect(countPromptTokens({ messages, tools: [] })).toBe(3 + (4 + 2) + (4 + 1) + 4);
  });

  it('counts calls and media of a message, and the tools', () => {
    const calls = [{ id: 'call_1', kind: 'function' as const, name: 'find', input: '{}' }];
    const messages = [{ role: 'assistant', text: 'ab', calls, media: ['image', 'file'] as const }];
    const tools = [{ kind: 'function' as const, name: 'find', parameters: {} }];

    expect(countPromptTokens({ messages, tools })).toBe(
      3 + (4 + 2 + 2 * 85) + Math.ceil(JSON.stringify(tools).length / 4),
    );
  });
});
