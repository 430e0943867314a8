import { describe, expect, it } from '@jest/globals';

import { parsePhraseList, parseTerms } from '../../../../../workers/moderation/local/phrase-lists.ts';

const LIST = `# A comment.

$fruit = (apple
  |pear)

@ hate violence: certain, disguised mild
# About fruit.
throw $fruit
eat (a
  |the) $fruit

@ harmless
peel $fruit
`;

describe('parsePhraseList', () => {
  it('reads groups, joins continued lines and puts abbreviations in', () => {
    expect(parsePhraseList('hate', LIST)).toEqual([
      {
        categories: ['hate', 'violence'],
        score: 0.95,
        disguisedScore: 0.4,
        phrases: ['throw (apple|pear)', 'eat (a|the) (apple|pear)'],
      },
      { categories: [], score: 0, phrases: ['peel (apple|pear)'] },
    ]);
  });

  it.each([
    ['a phrase without a group', 'throw it', /hate\.txt, line 1: a phrase needs a group/],
    ['an unknown category', '\n@ fruit: certain', /line 2: there is no category 'fruit'/],
    ['an unknown score', '@ hate: surely', /line 1: there is no score 'surely'/],
    ['a head without a score', '@ hate', /line 1: a group begins with @/],
    ['an unknown abbreviation', '@ hate: mild\nthrow $fruit', /line 2: there is no \$fruit/],
  ])('refuses %s and names the line', (_what, source, message) => {
    expect(() => parsePhraseList('hate', source)).toThrow(message);
  });
});

describe('parseTerms', () => {
  it('reads the alternatives under their name', () => {
    expect(parseTerms('<a> = one\n  |two\n<b> = <a> three\n')).toEqual({ a: 'one|two', b: '<a> three' });
  });

  it('refuses anything else and names the line', () => {
    expect(() => parseTerms('<a> = one\nthrow it')).toThrow(/terms\.txt, line 2/);
  });
});
