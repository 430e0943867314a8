import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import type { ChatMessage } from '../../../../../shared/contracts/chat-request.ts';
import { countBytes, countPrompt, fitWindow, surelyFits } from '../../../../../workers/pipeline/prompt/fit-window.ts';
import type { PromptParts } from '../../../../../workers/pipeline/prompt/fit-window.ts';

const user = (content: string): ChatMessage => ({ role: 'user', content });
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content });
const INSTRUCTION: ChatMessage = { role: 'system', content: 'iiii' };

/** One token a character; each message adds 4. */
const count = (text: string) => text.length;

const parts = (more: Partial<PromptParts>): PromptParts => ({
  instruction: undefined,
  history: [],
  submitted: [user('12345678')],
  ...more,
});

describe('the prompt for a context window', () => {
  it('is everything, instruction first, where everything fits exactly', () => {
    const history = [user('1234'), assistant('5678')];

    const fitted = fitWindow(parts({ instruction: INSTRUCTION, history }), 36 + 10, 10, count);

    expect(fitted).toEqual({
      kind: 'fits',
      messages: [INSTRUCTION, ...history, user('12345678')],
      promptTokens: 36,
    });
  });

  it('loses whole turns from the oldest when one token is missing', () => {
    const oldest = [user('a'), assistant('b')];
    const newest = [user('c'), assistant('d')];

    const fitted = fitWindow(parts({ history: [...oldest, ...newest] }), 31, 0, count);

    expect(fitted).toEqual({ kind: 'fits', messages: [...newest, user('12345678')], promptTokens: 22 });
  });

  it('never keeps an answer without its question, nor a question without its answer', () => {
    const turn = [user('q'), user('also q'), assistant('a'), assistant('more a')];

    for (let window = 12; window < 12 + countPrompt(turn, count); window += 1) {
      expect(fitWindow(parts({ history: turn }), window, 0, count)).toMatchObject({ messages: [user('12345678')] });
    }
  });

  it('does not skip a long turn to keep an older short one', () => {
    const history = [user('a'), assistant('b'), user('c'.repeat(50)), assistant('d'), user('e'), assistant('f')];

    const fitted = fitWindow(parts({ history }), 40, 0, count);

    expect(fitted).toMatchObject({ messages: [user('e'), assistant('f'), user('12345678')] });
  });

  it('never trims what was submitted: it says how many tokens there are and how many fit', () => {
    expect(fitWindow(parts({ history: [user('a'), assistant('b')] }), 16, 5, count)).toEqual({
      kind: 'too_long',
      promptTokens: 12,
      roomTokens: 11,
    });
  });

  it('may begin with an answer where the stored history does, as its question is no longer kept', () => {
    const history = [assistant('b'), user('c'), assistant('d')];

    expect(fitWindow(parts({ history }), 100, 0, count)).toMatchObject({ messages: [...history, user('12345678')] });
  });

  it('always fits, is a tail of the history, and wastes no room for a turn that would fit', () => {
    const message = fc.record({ role: fc.constantFrom('user', 'assistant'), content: fc.string({ maxLength: 30 }) });
    const inputs = fc.tuple(fc.array(message, { maxLength: 20 }), fc.integer({ min: 12, max: 400 }));

    fc.assert(
      fc.property(inputs, ([history, window]) => {
        const all = parts({ history });
        const fitted = fitWindow(all, window, 0, count);
        if (fitted.kind !== 'fits') throw new Error('The submitted messages always fit here');
        expect(countPrompt(fitted.messages, count)).toBe(fitted.promptTokens);
        expect(fitted.promptTokens).toBeLessThanOrEqual(window);
        const kept = fitted.messages.slice(0, -1);
        expect(history.slice(history.length - kept.length)).toEqual(kept);
        if (countPrompt([...all.history, ...all.submitted], count) <= window) expect(kept).toEqual(history);
      }),
    );
  });
});

describe('the quick check without a tokenizer', () => {
  it('never says that something fits which does not', () => {
    const text = fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }), { maxLength: 5 });

    fc.assert(
      fc.property(text, fc.integer({ min: 0, max: 200 }), (contents, window) => {
        const prompt = parts({ history: contents.map(user) });
        // A byte is the least a token can be.
        const tokens = countPrompt([...prompt.history, ...prompt.submitted], countBytes);
        expect(surelyFits(prompt, window, 10)).toBe(tokens <= window - 10);
      }),
    );
  });

  it('the quick check without a tokenizer counts the instruction, too', () => {
    const prompt = parts({ instruction: INSTRUCTION });

    expect(surelyFits(prompt, 20, 0)).toBe(true);
    expect(surelyFits(prompt, 19, 0)).toBe(false);
  });
});
