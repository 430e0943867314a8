import { describe, expect, it } from '@jest/globals';
import { createLocalModerator } from '../../../../../workers/moderation/local/local-moderator.ts';
import { createPhraseWindow } from '../../../../../workers/moderation/local/phrase-window.ts';
import { HARMLESS } from '../harmless-texts.ts';
import { VIOLATING } from '../violating-texts.ts';
import { checkSync } from '../check-sync.ts';

const moderator = createLocalModerator();
const REMEMBERED_MAX = 64;

/** From a reference answer of MT-Bench, the usual kind of prose. */
const PROSE =
  'Supervised learning uses labelled examples: the model is shown an input together with the answer that is expected, ' +
  'and learns to come closer to it. Unsupervised learning looks for structure in data without answers, such as groups ' +
  'of customers who buy the same things. In reinforcement learning an agent tries out what it can do in its surroundings ' +
  'and is told how well that went, as in a game that it wants to win. How you choose depends on your data, on the time ' +
  'that you have and on what should happen when the model makes a mistake.';

/** A pseudo-random number below a limit, the same row in every run. */
function createChance(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

interface Outcome {
  readonly released: string;
  readonly categories: readonly string[] | undefined;
  readonly heldMax: number;
  readonly heldAverage: number;
}

/** Streams a text in deltas of the lengths that `next` gives. */
function stream(text: string, next: () => number): Outcome {
  const window = createPhraseWindow(moderator);
  let released = '';
  let categories: readonly string[] | undefined;
  const held: number[] = [];
  for (let at = 0; at < text.length;) {
    const end = Math.min(text.length, at + next());
    const step = window.push(text.slice(at, end));
    released += step.release;
    categories ??= step.flagged?.categories;
    if (categories === undefined) held.push(end - released.length);
    at = end;
  }
  const last = window.end();
  released += last.release;
  categories ??= last.flagged?.categories;
  const heldAverage = held.reduce((sum, count) => sum + count, 0) / Math.max(1, held.length);
  return { released, categories, heldMax: Math.max(0, ...held), heldAverage };
}

const whole = (text: string) => stream(text, () => text.length + 1);

describe('phrase window', () => {
  it('catches a phrase that is split over deltas before any part of it is out', () => {
    const window = createPhraseWindow(moderator);
    const steps = ['Sure. ', 'Here: I w', 'ill ki', 'll y', 'ou', ' tomorrow', ' and more'].map((delta) =>
      window.push(delta),
    );
    expect(steps.map(({ release }) => release).join('')).toBe('Sure. Here: ');
    expect(steps.at(-1)?.flagged?.categories).toContain('harassment/threatening');
    expect(window.end().release).toBe('');
  });

  it('flags a phrase that only the end of the answer completes', () => {
    const window = createPhraseWindow(moderator);
    expect(window.push('I will kill you').flagged).toBeUndefined();
    expect(window.end()).toMatchObject({ release: '', flagged: { flagged: true } });
  });

  it('releases the beginning of a phrase as soon as it becomes something else', () => {
    const window = createPhraseWindow(moderator);
    expect(window.push('I will kill').release).toBe('');
    expect(window.push(' the process now').release).toBe('I will kill the process now');
  });

  it('holds back nothing that cannot begin a phrase', () => {
    const window = createPhraseWindow(moderator);
    expect(window.push('The capital of France is Paris. ').release).toBe('The capital of France is Paris. ');
  });

  it('phrase window never splits a character', () => {
    const window = createPhraseWindow(moderator);
    const [high, low] = ['😀'.slice(0, 1), '😀'.slice(1)];
    expect(window.push(`Paris ${high}`).release).toBe('Paris ');
    expect(window.push(low).release).toBe('😀');
    expect(window.push(high).release).toBe('');
    expect(window.end().release).toBe(high);
  });

  it('flags a phrase that is stretched beyond the window', () => {
    const text = `Well, I will ${' '.repeat(300)} kill ${'-'.repeat(300)} you`;
    const outcome = stream(text, () => 7);
    expect(outcome.categories).toContain('harassment/threatening');
    expect(outcome.heldMax).toBeLessThanOrEqual(REMEMBERED_MAX);
  });

  it('lets pass what the policy of the tenant allows', () => {
    const window = createPhraseWindow(moderator, { disabled: ['illicit'], thresholds: {} });
    const released = window.push('how to make meth, they said').release + window.end().release;
    expect(released).toBe('how to make meth, they said');
  });

  it('releases and flags the same however a text is cut', () => {
    const chance = createChance(7);
    const pick = (texts: readonly string[]) => texts[chance(texts.length)] ?? '';
    const violating = Object.values(VIOLATING).flat();
    const harmless = HARMLESS;
    const noise = [
      ' ',
      '\n\n',
      '. ',
      '! ',
      'i!',
      '$',
      ' a ',
      '😀',
      '𝓚',
      '\u200b',
      'é',
      'i will kill ',
      'how to make a ',
      'b o m b ',
    ];
    const lengths = [() => 1, () => 1 + chance(3), () => 1 + chance(20), () => 1 + chance(100)];
    for (let round = 0; round < 150; round += 1) {
      const parts = Array.from({ length: 1 + chance(6) }, () => pick([violating, harmless, noise][chance(3)] ?? noise));
      const text = parts.join(pick([' ', '', '. ', ' '.repeat(80)]));
      const expected = whole(text);
      expect(expected.categories !== undefined).toBe(checkSync(text).flagged);
      expect(text.startsWith(expected.released)).toBe(true);
      if (expected.categories === undefined) expect(expected.released).toBe(text);
      for (const next of lengths) {
        const { released, categories, heldMax } = stream(text, next);
        expect({ text, released, categories }).toEqual({
          text,
          released: expected.released,
          categories: expected.categories,
        });
        expect(heldMax).toBeLessThanOrEqual(REMEMBERED_MAX);
      }
    }
  });

  it('holds back fewer than six characters of ordinary text on average', () => {
    const outcome = stream(PROSE, () => 4);
    expect(outcome.categories).toBeUndefined();
    expect(outcome.heldAverage).toBeLessThan(6);
  });

  it('costs the same per delta at the end of a long answer as at its beginning', () => {
    const window = createPhraseWindow(moderator);
    const text = HARMLESS.join(' ').slice(0, 10_000);
    const cpuMsOf = () => {
      const before = process.cpuUsage();
      for (let at = 0; at < text.length; at += 4) window.push(text.slice(at, at + 4));
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    const runs = Array.from({ length: 16 }, cpuMsOf);
    // 160,000 characters in: a window that looked at the whole answer would need far longer for the later runs.
    expect(Math.min(...runs.slice(8))).toBeLessThan(3 * Math.min(...runs.slice(0, 8)) + 5);
  });
});
