import { describe, expect, it } from '@jest/globals';
import { fingerprintOf, planAnswer } from '../../../../scripts/simulated-provider/plan-answer.ts';
import type { Answer } from '../../../../scripts/simulated-provider/plan-answer.ts';
import type { SettingsInput } from '../../../../scripts/simulated-provider/settings.ts';
import { mergeSettings, toSettings } from '../../../../scripts/simulated-provider/settings.ts';
import { contextInstruction, resolveContext } from '../../../../workers/pipeline/context-instruction.ts';
import { splitTokens } from '../../../../scripts/simulated-provider/tokens.ts';

const messages = [
  { role: 'user', text: 'First' },
  { role: 'assistant', text: 'Reply' },
  { role: 'user', text: 'Say this' },
];

function plan(
  input: SettingsInput,
  request: Partial<Parameters<typeof planAnswer>[0]> = {},
  { seed = 1, validJson = true, empty = false } = {},
): Answer {
  const asked = { messages, maxTokens: null, stop: [], wantsJson: false, temperature: null, ...request };
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

  describe('where it shows the request', () => {
    const said = (content: ReturnType<typeof contextInstruction>) => ({ role: 'system', text: content?.content ?? '' });
    const context = said(contextInstruction(resolveContext({ request: { subject: 'algebra', grade: '8' } })));

    it('says that it is simulated, and what it was asked and remembers', () => {
      expect(plan({ show: true }).text).toMatch(
        /^\(simulated\) You asked: “Say this” I remember 2 earlier messages of this conversation; you said before: “First” No model has read this\./,
      );
    });

    it('shows subject and grade of the instruction, other system messages and the temperature', () => {
      const told = [context, { role: 'system', text: 'Be\nbrief.' }, { role: 'user', text: 'Hi' }];

      expect(plan({ show: true }, { messages: told, temperature: 0.2 }).text).toContain(
        'I remember no earlier messages of this conversation. The subject is “algebra”. The grade level is “8”. A system message says: “Be brief.” The temperature is 0.2. No model',
      );
    });

    it('shows the same as a JSON object where JSON is asked for', () => {
      const { text } = plan({ show: true }, { messages: [context, ...messages], wantsJson: true });

      expect(JSON.parse(text)).toEqual({
        simulated: true,
        you_asked: 'Say this',
        earlier_messages: 2,
        you_said_before: 'First',
        subject: 'algebra',
        grade_level: '8',
        note: expect.stringContaining('No model has read this.'),
      });
    });

    it('answers the shortest question with enough text for a stream to be watched and cut', () => {
      const { deltas } = plan({ show: true, chunks: 24 }, { messages: [{ role: 'user', text: '?' }] });

      expect(deltas).toHaveLength(24);
    });

    it('shows no more of a long message than a reader takes in', () => {
      expect(plan({ show: true }, { messages: [{ role: 'user', text: 'a'.repeat(9_999) }] }).text.length).toBeLessThan(
        600,
      );
    });
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
