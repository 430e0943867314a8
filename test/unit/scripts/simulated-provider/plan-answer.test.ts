import { describe, expect, it } from '@jest/globals';

import { fingerprintOf, planAnswer } from '../../../../scripts/simulated-provider/plan-answer.ts';
import type { Answer, Plan } from '../../../../scripts/simulated-provider/plan-answer.ts';
import { readMarks } from '../../../../scripts/simulated-provider/call-tools.ts';
import { mergeSettings, toSettings } from '../../../../scripts/simulated-provider/settings.ts';
import type { SettingsInput } from '../../../../scripts/simulated-provider/settings.ts';
import { splitTokens } from '../../../../scripts/simulated-provider/tokens.ts';
import { contextInstruction, resolveContext } from '../../../../workers/pipeline/build-prompt.ts';

const messages = [
  { role: 'user', text: 'First' },
  { role: 'assistant', text: 'Reply' },
  { role: 'user', text: 'Say this' },
];

function plan(
  input: SettingsInput,
  request: Partial<Parameters<typeof planAnswer>[0]> = {},
  more: Partial<Plan> = {},
): Answer {
  const asked = {
    ...{ messages, maxTokens: null, stop: [], wantsJson: false, temperature: null },
    ...{ tools: [], toolChoice: 'auto' as const, parallel: true },
    ...request,
  };
  const plan: Plan = { seed: 1, key: 'a', marks: readMarks(asked.messages), json: 'valid', empty: false, ...more };
  return planAnswer(asked, toSettings(mergeSettings(input)), plan);
}

const said = (text: string) => [{ role: 'user', text }];

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
    expect(() => JSON.parse(plan({}, { wantsJson: true }, { json: 'invalid' }).text) as unknown).toThrow(SyntaxError);
  });

  describe('where it shows the request', () => {
    const instruction = contextInstruction(resolveContext({ request: { subject: 'algebra', grade: '8' } }));
    const context = { role: 'system', text: instruction?.content ?? '' };

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

  it('answers by the schema where there is one, and untrue to it where that is set', () => {
    const schema = { type: 'object', properties: { age: { type: 'integer', minimum: 18 } }, required: ['age'] };
    const asked = { wantsJson: true, schema };

    expect(JSON.parse(plan({ show: true }, asked).text)).toEqual({ age: 18 });
    expect(JSON.parse(plan({ echo: true }, asked, { json: 'untrue' }).text)).toEqual({ answer: 'Say this' });
  });

  it('says first how many images, recordings and files it sees', () => {
    const media = ['image', 'audio', 'image'] as const;

    expect(plan({ echo: true }, { messages: [{ role: 'user', text: 'Look.', media }] }).text).toBe(
      'I see 2 images and 1 recording. Look.',
    );
  });

  it('reasons, and refuses, by a mark in the last message', () => {
    const reasoned = plan({ echo: true }, { messages: said('simulate-reasoning') });
    expect(reasoned.reasoning).toMatch(/^First I look/);
    expect(reasoned.text).toBe('simulate-reasoning');
    expect(reasoned.reasoningTokens).toBe(splitTokens(reasoned.reasoning).length);

    expect(plan({}, { messages: said('simulate-refusal') })).toMatchObject({ text: '', refusal: expect.any(String) });
  });

  describe('with tools', () => {
    const city = { type: 'object', properties: { city: { enum: ['Oslo', 'Rome'] } }, required: ['city'] };
    const tools = [
      { kind: 'function' as const, name: 'weather', parameters: city },
      { kind: 'function' as const, name: 'time', parameters: {} },
    ];
    const callsOf = (request: Partial<Parameters<typeof planAnswer>[0]>) =>
      plan({}, { tools, ...request }).calls.map((call) => `${call.name} ${call.input}`);
    const answered = (name: string) => [
      { role: 'assistant', text: '', calls: [{ id: name, kind: 'function' as const, name, input: '{}' }] },
      { role: 'tool', text: '7 °C', callId: name },
    ];

    it('calls one for each mark, with arguments true to its schema or those of the mark', () => {
      expect(callsOf({ messages: said('Hello') })).toEqual([]);
      expect(callsOf({ messages: said('Go: simulate-tool') })).toEqual(['weather {"city":"Oslo"}']);
      expect(
        callsOf({ messages: said('simulate-tool=time{"at":{"x":1}} and simulate-tool, simulate-tool=none') }),
      ).toEqual(['time {"at":{"x":1}}', 'weather {"city":"Oslo"}']);
    });

    it('calls one at a time without parallel calls, and none again in this turn', () => {
      const asked = said('simulate-tool simulate-tool=time');
      const turn = { tools, parallel: false };

      expect(callsOf({ ...turn, messages: asked })).toEqual(['weather {"city":"Oslo"}']);
      expect(callsOf({ ...turn, messages: [...asked, ...answered('weather')] })).toEqual(['time {}']);
      expect(callsOf({ ...turn, messages: [...asked, ...answered('weather'), ...answered('time')] })).toEqual([]);
    });

    it('calls the tool that is named, and each in turn where one is required', () => {
      const asked = said('Hello');

      expect(callsOf({ messages: asked, toolChoice: { name: 'time' } })).toEqual(['time {}']);
      expect(callsOf({ messages: asked, toolChoice: 'required' })).toEqual(['weather {"city":"Oslo"}']);
      expect(callsOf({ messages: [...asked, ...answered('weather')], toolChoice: 'required' })).toEqual(['time {}']);
      expect(callsOf({ messages: said('simulate-tool'), toolChoice: 'none' })).toEqual([]);
    });

    it('calls a custom tool with a text', () => {
      const custom = [{ kind: 'custom' as const, name: 'note', parameters: {} }];
      const { deltas } = plan({}, { tools: custom, messages: said('simulate-tool') });

      expect(deltas.map(({ other }) => other)).toEqual([
        { tool_calls: [{ index: 0, id: expect.any(String), type: 'custom', custom: { name: 'note', input: '' } }] },
        { tool_calls: [{ index: 0, custom: { input: 'text' } }] },
      ]);
    });

    it('quotes the result of a tool', () => {
      const messages = [...said('simulate-tool'), ...answered('weather')];

      expect(plan({ echo: true }, { tools, messages }).text).toBe('The tool weather says: “7 °C”');
      expect(plan({ show: true }, { tools, messages }).text).toContain('The tool weather says: “7 °C”');
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
