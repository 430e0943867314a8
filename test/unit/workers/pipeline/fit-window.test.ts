import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import type { ChatMessage } from '../../../../shared/contracts/chat-request.ts';
import {
  TooLongError,
  countBytes,
  countPrompt,
  fitWindow,
  promptFor,
} from '../../../../workers/pipeline/fit-window.ts';
import type { PromptParts } from '../../../../workers/pipeline/fit-window.ts';

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

    expect(fitted).toEqual({ kind: 'fits', messages: [INSTRUCTION, ...history, user('12345678')], promptTokens: 36 });
  });

  it('never keeps an answer without its question, nor a question without its answer', () => {
    const turn = [user('q'), user('also q'), assistant('a'), assistant('more a')];

    for (let window = 12; window < 12 + countPrompt(turn, count); window += 1) {
      expect(fitWindow(parts({ history: turn }), window, 0, count)).toMatchObject({ messages: [user('12345678')] });
    }
  });

  it('never trims what was submitted: it says how many tokens there are', () => {
    expect(fitWindow(parts({ history: [user('a'), assistant('b')] }), 16, 5, count)).toEqual({
      kind: 'too_long',
      promptTokens: 12,
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

describe('the prompt for a target', () => {
  /** A token for three bytes at the most. */
  const tokensOf = (text: string) => Math.ceil(countBytes(text) / 3);
  const NONE = { maxTokens: 0 };
  const bytesOf = (messages: readonly ChatMessage[]) => countPrompt(messages, countBytes);

  /** A counter that notes what it was asked. */
  function noted(): { asked: string[]; count: (text: string) => Promise<number> } {
    const asked: string[] = [];
    return {
      asked,
      count: (text) => {
        asked.push(text);
        return Promise.resolve(tokensOf(text));
      },
    };
  }

  it('is the same as if every message had been counted', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 20 });
    const message = fc.record({ role: fc.constantFrom('user', 'assistant'), content: text });
    const inputs = fc.record({
      instruction: fc.constantFrom(undefined, INSTRUCTION),
      history: fc.array(message, { maxLength: 12 }),
      submitted: fc.array(message, { minLength: 1, maxLength: 4 }),
    });

    await fc.assert(
      fc.asyncProperty(inputs, fc.integer({ min: 0, max: 400 }), async (prompt, window) => {
        const expected = fitWindow(prompt, window, 10, tokensOf);
        const actual = await promptFor(prompt, window, { maxTokens: 10 }, noted().count).catch(
          (error: unknown) => error,
        );
        expect(actual).toEqual(
          expected.kind === 'fits'
            ? { messages: expected.messages, maxTokens: 10 }
            : new TooLongError(expected.promptTokens, window, 10),
        );
      }),
    );
  });

  it('asks for no token where the bytes fit, those of the instruction among them', async () => {
    const { asked, count: ask } = noted();
    const prompt = parts({ instruction: INSTRUCTION });

    await promptFor(prompt, 20, NONE, ask);
    expect(asked).toEqual([]);

    await promptFor(prompt, 19, NONE, ask);
    expect(asked).not.toEqual([]);
  });

  it('counts only as many messages as it takes to know', async () => {
    const { asked, count: ask } = noted();
    const history = Array.from({ length: 10 }, (_, index) => user(String(index).repeat(30)));
    const prompt = parts({ history });

    const { messages } = await promptFor(prompt, bytesOf([...history, ...prompt.submitted]) - 50, NONE, ask);

    expect(messages).toHaveLength(11);
    expect(asked).toHaveLength(3);
  });

  it('counts with the tokenizer', async () => {
    const words = 'the river '.repeat(100);
    const prompt = parts({ submitted: [user(words)] });

    expect(await promptFor(prompt, 250, NONE)).toEqual({ messages: prompt.submitted, maxTokens: 0 });
    await expect(promptFor(prompt, 200, NONE)).rejects.toThrow(TooLongError);
  });
});

describe('an answer that may be fitted', () => {
  const FITS = { maxTokens: 4_096, fitsTokens: true };
  /** A token for each letter. */
  const letters = (text: string) => Promise.resolve(text.length);
  const ask = (prompt: PromptParts, window: number, request = FITS) => promptFor(prompt, window, request, letters);
  const long = (length: number) => user('x'.repeat(length));

  it('is as long as it was asked for where the window has room for it', async () => {
    expect((await ask(parts({ submitted: [long(996)] }), 5_096)).maxTokens).toBe(4_096);
    expect((await ask(parts({ submitted: [long(6)] }), 110, { maxTokens: 100, fitsTokens: true })).maxTokens).toBe(100);
  });

  it('gets what the window leaves, less a margin for a template and another measure', async () => {
    expect((await ask(parts({ submitted: [long(796)] }), 4_096)).maxTokens).toBe(4_096 - 800 - 64 - 100);
  });

  it('gets at least half of what is left, and never nothing', async () => {
    expect((await ask(parts({ submitted: [long(996)] }), 1_100)).maxTokens).toBe(50);
    expect((await ask(parts({ submitted: [long(996)] }), 1_001)).maxTokens).toBe(1);
    await expect(ask(parts({ submitted: [long(996)] }), 1_000)).rejects.toThrow(
      "This model's maximum context length is 1000 tokens; the messages have 1000: 1 too many. Send fewer",
    );
  });

  it('leaves history half of a window that it would fill alone', async () => {
    const history = [long(900), assistant('y'.repeat(92)), long(900), assistant('y'.repeat(92))];

    const { messages, maxTokens } = await ask(parts({ history }), 4_096);

    expect(messages).toHaveLength(5);
    expect(maxTokens).toBeGreaterThan(1_600);
    expect((await ask(parts({ history }), 2_100)).messages).toHaveLength(3);
  });

  it('never takes, with its prompt, more than the window', async () => {
    const text = fc.integer({ min: 1, max: 300 }).map((length) => 'x'.repeat(length));
    const message = fc.record({ role: fc.constantFrom('user', 'assistant'), content: text });
    const inputs = fc.record({
      instruction: fc.constantFrom(undefined, INSTRUCTION),
      history: fc.array(message, { maxLength: 8 }),
      submitted: fc.array(message, { minLength: 1, maxLength: 3 }),
    });
    const numbers = fc.integer({ min: 1, max: 2_000 });

    await fc.assert(
      fc.asyncProperty(inputs, numbers, numbers, async (prompt, window, most) => {
        const fitted = await ask(prompt, window, { maxTokens: most, fitsTokens: true }).catch(
          (error: unknown) => error,
        );
        const least = countPrompt(
          [...(prompt.instruction === undefined ? [] : [prompt.instruction]), ...prompt.submitted],
          (text) => text.length,
        );
        if (fitted instanceof TooLongError) expect(least).toBeGreaterThanOrEqual(window);
        else {
          const { messages, maxTokens } = fitted as Awaited<ReturnType<typeof ask>>;
          expect(maxTokens).toBeGreaterThanOrEqual(1);
          expect(maxTokens).toBeLessThanOrEqual(most);
          expect(countPrompt(messages, (text) => text.length) + maxTokens).toBeLessThanOrEqual(window);
        }
      }),
    );
  });
});
