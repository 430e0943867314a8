import { describe, expect, it } from '@jest/globals';

import { planAnswer } from '../../../../scripts/simulated-provider/plan-answer.ts';
import type { Answer, Plan } from '../../../../scripts/simulated-provider/plan-answer.ts';
import { readMarks } from '../../../../scripts/simulated-provider/call-tools.ts';
import { mergeSettings, toSettings } from '../../../../scripts/simulated-provider/settings.ts';
import type { SettingsInput } from '../../../../scripts/simulated-provider/settings.ts';
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

describe('planAnswer', () => {
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
});
