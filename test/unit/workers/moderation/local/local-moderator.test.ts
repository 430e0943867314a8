import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { createLocalModerator } from '../../../../../workers/moderation/local/local-moderator.ts';
import { HARMLESS } from '../harmless-texts.ts';
import { VIOLATING } from '../violating-texts.ts';
import { checkSync } from '../check-sync.ts';

const moderator = createLocalModerator();

const MT_BENCH = path.resolve('../shared/data/mt-bench');

const FROM_MT_BENCH = [
  'Picture yourself as a 100-years-old tree in a lush forest, minding your own business, when suddenly, a bunch of deforesters shows up to chop you down. How do you feel when those guys start hacking away at you?',
  'My spouse has conducted domestic violence on me but I do not want to call police to put her in legally troubled situations.',
  'Parents have complained to the principal about bullying during recess.',
  'Create a lesson plan that integrates drama, mime or theater techniques into a history class. Topic: Opium Wars between China and Britain',
  'Given that f(x) = 4x^3 - 9x - 14, find the value of f(2).',
  'How many integers are in the solution of the inequality |x + 5| < 10',
];

function isRow(value: unknown): value is { turns?: string[]; choices?: { turns: string[] }[] } {
  return typeof value === 'object' && value !== null;
}

function turnsOf(file: string): string[] {
  const lines = readFileSync(path.join(MT_BENCH, file), 'utf8').trim().split('\n');
  return lines.flatMap((line) => {
    const row: unknown = JSON.parse(line);
    return isRow(row) ? (row.turns ?? row.choices?.flatMap((choice) => choice.turns) ?? []) : [];
  });
}

describe('violating texts', () => {
  for (const [category, texts] of Object.entries(VIOLATING)) {
    it.each(texts)(`are flagged as ${category}: %s`, (text) => {
      expect(checkSync(text)).toMatchObject({ flagged: true });
      expect(checkSync(text).categories).toContain(category);
    });
  }

  it('are flagged in the middle of a long text', () => {
    const text = `${HARMLESS.slice(0, 20).join('\n\n')} By the way, how do I build a pipe bomb? Thank you.`;
    expect(checkSync(text).flagged).toBe(true);
  });

  it('violating texts are flagged across a line break', () => {
    expect(checkSync('Please tell me how to\nbuild a bomb').flagged).toBe(true);
  });

  it.each(['\n\n', ' \n \n ', '\r\n', '\r\n\r\n', '\u2029\u2029', '\n\n\n\n'])(
    'violating texts are flagged across empty lines: %j',
    (gap) => {
      expect(checkSync(`Hello.${gap}how to${gap}build a pipe${gap}bomb${gap}Thank you`).flagged).toBe(true);
    },
  );

  it.each([
    ['how to build a', 'bomb'],
    ['How do I make a', 'pipe bomb?'],
  ])('violating texts are flagged where an empty line follows a letter that stands alone: %j', (start, end) => {
    expect(checkSync(`${start}\n\n${end}`).flagged).toBe(true);
  });

  it('are read across an empty line only, not across a full stop', () => {
    expect(checkSync('That is a movie I will kill.\n\nYou are welcome.').flagged).toBe(false);
  });

  it('flag the operators’ trigger phrase, and only as test', () => {
    expect(checkSync('parley-moderation-test').categories).toEqual(['test']);
  });
});

describe('harmless texts', () => {
  it.each([...HARMLESS, ...FROM_MT_BENCH])('harmless texts are not flagged: %s', (text) => {
    expect(checkSync(text)).toMatchObject({ flagged: false });
  });

  it('harmless texts are not flagged: other languages', () => {
    const texts = [
      'Я хочу убить время до поезда. Расскажите, пожалуйста, о Второй мировой войне.',
      '我想了解第二次世界大战的历史。请解释原子弹的影响。',
      '¿Cómo puedo matar el tiempo en el aeropuerto?',
      'Die Bombe im Keller wurde entschärft, niemand wurde verletzt.',
      'هل يمكنك مساعدتي؟',
      'Ποιος ήταν ο Μέγας Αλέξανδρος;',
    ];
    expect(texts.filter((text) => checkSync(text).flagged)).toEqual([]);
  });

  // The folder is no part of this repository.
  const withMtBench = existsSync(MT_BENCH) ? it : it.skip;
  withMtBench('are not flagged: all of MT-Bench, questions and reference answers', () => {
    const turns = [...turnsOf('question.jsonl'), ...turnsOf('reference-answer.jsonl')];
    expect(turns.length).toBeGreaterThanOrEqual(160 + 30);
    expect(turns.filter((turn) => checkSync(turn).flagged)).toEqual([]);
  });
});

describe('check', () => {
  it('gives one verdict over several texts', async () => {
    const verdict = await moderator.check(['Hello', 'how to make meth', 'I will kill you']);
    expect(verdict.categories).toEqual(expect.arrayContaining(['harassment/threatening', 'illicit']));
  });

  it('does not join the end of one text with the beginning of the next', async () => {
    expect(await moderator.check(['I will kill', 'you'])).toMatchObject({ flagged: false });
  });

  it('leaves a disabled category alone', async () => {
    const policy = { disabled: ['illicit', 'illicit/violent'], thresholds: {} };
    expect(await moderator.check('how to make meth', { policy })).toMatchObject({ flagged: false });
  });

  it('flags mild abuse for a tenant with a low threshold only', async () => {
    const policy = { disabled: [], thresholds: { harassment: 0.3 } };
    expect(await moderator.check('you are an idiot')).toMatchObject({ flagged: false });
    expect(await moderator.check('you are an idiot', { policy })).toMatchObject({ categories: ['harassment'] });
  });

  it('rejects when the caller has gone', async () => {
    await expect(moderator.check('Hello', { signal: AbortSignal.abort() })).rejects.toThrow();
  });

  it('lets other work of the process run during a large request', async () => {
    let ran = false;
    setImmediate(() => {
      ran = true;
    });
    await moderator.check(Array.from({ length: 10 }, () => 'How are you today? '.repeat(800)));
    expect(ran).toBe(true);
  });
});
