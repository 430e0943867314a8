import { describe, expect, it } from '@jest/globals';
import { fingerprintOf, planAnswer } from '../../../../scripts/simulated-provider/plan-answer.ts';
import type { Answer } from '../../../../scripts/simulated-provider/plan-answer.ts';
import type { SettingsInput } from '../../../../scripts/simulated-provider/settings.ts';
import { mergeSettings, toSettings } from '../../../../scripts/simulated-provider/settings.ts';
import { splitTokens } from '../../../../scripts/simulated-provider/tokens.ts';

const messages = [
  { role: 'user', text: 'First' },
  { role: 'assistant', text: 'Reply' },
  { role: 'user', text: 'Say this' },
];

function plan(
  input: SettingsInput,
  request: { maxTokens?: number; stop?: string[]; wantsJson?: boolean } = {},
  { seed = 1, validJson = true, empty = false } = {},
): Answer {
  const asked = { messages, maxTokens: null, stop: [], wantsJson: false, ...request };
  return planAnswer(asked, toSettings(mergeSettings(input)), seed, { validJson, empty });
}

describe('planAnswer', () => {
  it('spreads default answers over 60 to 120 words', () => {
    const lengths = Array.from({ length: 200 }, (_, seed) => plan({}, {}, { seed }).completionTokens);

    expect(Math.min(...lengths)).toBe(60);
    expect(Math.max(...lengths)).toBe(120);
  });

  it.each<[SettingsInput, number]>([
    [{}, Math.ceil(plan({}).completionTokens / 3)],
    [{ chunks: 40 }, 40],
    [{ chunks: 500 }, 500],
    [{ chunks: 40, words: 10 }, 10],
    [{ chunks: 7, words: 100 }, 7],
  ])('makes the deltas that %j asks for, which add up to the answer', (input, count) => {
    const { deltas, text, completionTokens } = plan(input);

    expect(deltas).toHaveLength(count);
    expect(deltas.map((delta) => delta.text).join('')).toBe(text);
    expect(deltas.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(completionTokens);
    expect(deltas.every((delta) => delta.tokens === splitTokens(delta.text).length)).toBe(true);
  });

  it('cuts at max_tokens with finish reason length', () => {
    expect(plan({ tokens: 50 }, { maxTokens: 20 })).toMatchObject({ completionTokens: 20, finishReason: 'length' });
    expect(plan({ tokens: 20 }, { maxTokens: 20 })).toMatchObject({ completionTokens: 20, finishReason: 'stop' });
  });

  it('ends ahead of the first stop sequence', () => {
    const answer = plan({ text: 'one two three four' }, { stop: ['four', ' three'] });

    expect(answer).toMatchObject({ text: 'one two', finishReason: 'stop' });
  });

  it('answers with the given text, the last user message or nothing', () => {
    expect(plan({ text: 'Exactly this.' }).text).toBe('Exactly this.');
    expect(plan({ echo: true }).text).toBe('Say this');
    expect(plan({}, {}, { empty: true })).toMatchObject({ text: '', deltas: [], completionTokens: 0 });
  });

  it('answers with a JSON object where JSON is asked for, and with broken JSON where that is set', () => {
    expect(JSON.parse(plan({ echo: true }, { wantsJson: true }).text)).toEqual({ answer: 'Say this' });
    expect(() => JSON.parse(plan({}, { wantsJson: true }, { validJson: false }).text) as unknown).toThrow(SyntaxError);
  });

  it('reports the finish reason of the settings', () => {
    expect(plan({ finish_reason: 'content_filter' }).finishReason).toBe('content_filter');
  });
});

describe('fingerprintOf', () => {
  it('differs with a text, a role, a boundary between messages and a seed', () => {
    const user = (text: string) => ({ role: 'user', text });
    const prints = [
      fingerprintOf({ messages: [user('ab')], seed: null }),
      fingerprintOf({ messages: [user('ac')], seed: null }),
      fingerprintOf({ messages: [{ role: 'system', text: 'ab' }], seed: null }),
      fingerprintOf({ messages: [user('a'), user('b')], seed: null }),
      fingerprintOf({ messages: [user('ab')], seed: 1 }),
    ];

    expect(new Set(prints.map(({ seed }) => seed)).size).toBe(prints.length);
    expect(fingerprintOf({ messages: [user('ab')], seed: null })).toEqual(prints[0]);
  });
});
