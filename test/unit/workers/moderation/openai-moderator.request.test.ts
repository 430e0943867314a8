import { describe, expect, it } from '@jest/globals';

import { toBatches, toModerationBody } from '../../../../workers/moderation/openai-moderator.ts';

describe('the inputs of a moderation call', () => {
  it('are the texts in order, without those that say nothing', () => {
    expect(toBatches(['a', ' \n', 'b', ''])).toEqual([['a', 'b']]);
    expect(toBatches([' '])).toEqual([]);
  });

  it('have a text of several lines as one line, too', () => {
    expect(toBatches(['how to\n\nbuild it', 'one line\n'])).toEqual([
      ['how to\n\nbuild it', 'how to build it', 'one line\n'],
    ]);
  });

  it('have spaces in place of line breaks, and white space beside them, only', () => {
    expect(toBatches(['a  b\t\tc \n d \u2028\u2029 e'])).toEqual([['a  b\t\tc \n d \u2028\u2029 e', 'a  b\t\tc d e']]);
  });

  it('take no longer for messages of spaces than for others', () => {
    const text = Array.from({ length: 24 }, () => `a${' '.repeat(15_998)}b`).join('\n\n');
    const begun = performance.now();
    toBatches([text]);
    // A millisecond or two; an expression that goes back takes some seconds, and holds up the whole worker.
    expect(performance.now() - begun).toBeLessThan(1_000);
  });

  it('are so many at most, and so long together', () => {
    const many = toBatches(Array.from({ length: 70 }, (_, index) => String(index)));
    expect(many.map((batch) => batch.length)).toEqual([32, 32, 6]);
    expect(many.flat()).toEqual(Array.from({ length: 70 }, (_, index) => String(index)));

    const long = toBatches(Array.from({ length: 5 }, () => 'x'.repeat(30_000)));
    expect(long.map((batch) => batch.length)).toEqual([2, 2, 1]);
  });

  it('have no half of a surrogate pair, wherever a text is cut', () => {
    expect(JSON.parse(toModerationBody(['a\ud83d', '😀'], undefined))).toEqual({ input: ['a\ufffd', '😀'] });
    const bodies = ['', 'a'].flatMap((first) =>
      toBatches([`${first}${'😀'.repeat(30_000)}`]).map((batch) => toModerationBody(batch, undefined)),
    );
    for (const body of bodies) expect(body.toLowerCase()).not.toContain('\\ud');
  });

  it('cut a long text into pieces that overlap and miss nothing', () => {
    const text = Array.from({ length: 20_000 }, (_, index) => `${index} `).join('');
    const pieces = toBatches([text]).flat();

    expect(pieces.length).toBeGreaterThan(3);
    let covered = '';
    for (const piece of pieces) {
      const overlap = covered === '' ? 0 : 200;
      expect(covered.slice(covered.length - overlap)).toBe(piece.slice(0, overlap));
      covered += piece.slice(overlap);
    }
    expect(covered).toBe(text);
  });
});
