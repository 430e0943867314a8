import { describe, expect, it } from '@jest/globals';
import { compileLexicon } from '../../../../../workers/moderation/local/lexicon.ts';
import type { PhraseGroup } from '../../../../../workers/moderation/local/phrase-lists.ts';
import { TextScanner } from '../../../../../workers/moderation/local/text-scanner.ts';

const TERMS = { colour: 'red|dark (blue|green)', thing: '<colour> ball' };

function isFound(phrases: readonly string[], text: string, harmless: readonly string[] = []): boolean {
  const groups: PhraseGroup[] = [
    { categories: ['test'], score: 1, phrases },
    { categories: [], score: 0, phrases: harmless },
  ];
  let found = false;
  const scanner = new TextScanner(compileLexicon({ groups, terms: TERMS }), () => (found = true));
  scanner.write(text);
  scanner.end();
  return found;
}

describe('the notation of phrases', () => {
  it.each([
    ['one two', 'zero one, two three', true],
    ['one two', 'one three two', false],
    ['one two', 'one twofold', false],
    ['one (two|three four) five', 'one three four five', true],
    ['one (two|three four) five', 'one three five', false],
    ['one [two] three', 'one three', true],
    ['one [two] three', 'one two two three', false],
    ['one ~2 four', 'one of the four', true],
    ['one ~2 four', 'one of all the four', false],
    ['a <thing>', 'a dark green ball', true],
    ['a [<colour>] cat', 'a cat', true],
    ['^ one', 'Yes. One', true],
    ['^ one', 'not one', false],
    ['one !(two|<colour2>)', 'one', true],
  ])('the notation of phrases %s in "%s": %s', (phrase, text, expected) => {
    expect(isFound([phrase.replace('<colour2>', 'three')], text)).toBe(expected);
  });

  it('takes a phrase back when a word follows that makes it harmless', () => {
    expect(isFound(['one !(two)'], 'one two')).toBe(false);
    expect(isFound(['one !(two)'], 'one. Two')).toBe(true);
    expect(isFound(['one !(two)'], 'one three')).toBe(true);
  });

  it('drops a match inside a harmless phrase that ends with it', () => {
    expect(isFound(['one two'], 'never one two', ['never one two'])).toBe(false);
    expect(isFound(['one two'], 'never one two three one two', ['never one two'])).toBe(true);
  });

  it.each(['', 'one (two', 'one two)', 'one <nothing>', 'One', "don't", 'one !two', 'one !(two three)', '(one|)'])(
    'the notation of phrases refuses %j',
    (phrase) => {
      expect(() =>
        compileLexicon({ groups: [{ categories: ['test'], score: 1, phrases: [phrase] }], terms: TERMS }),
      ).toThrow();
    },
  );
});
