import { describe, expect, it } from '@jest/globals';
import { englishDataset, englishRecommendedTransformers, RegExpMatcher } from 'obscenity';
import { writeText } from '../../../../scripts/simulated-provider/write-text.ts';

describe('writeText', () => {
  it('writes the same text for the same seed and another one for another', () => {
    expect(writeText(7, 80)).toBe(writeText(7, 80));
    expect(writeText(7, 80)).not.toBe(writeText(8, 80));
  });

  it.each([1, 2, 7, 60, 1000])('writeText writes exactly %d words, in sentences', (words) => {
    const text = writeText(42, words);

    expect(text.split(' ')).toHaveLength(words);
    expect(text).toMatch(/^[A-Z][a-z]+( [a-zA-Z]+\.?)*\.$|^[A-Z][a-z]+\.$/);
  });

  it('writes nothing that moderation could flag, not even with its spaces and full stops left out', () => {
    const matcher = new RegExpMatcher({ ...englishDataset.build(), ...englishRecommendedTransformers });
    for (let seed = 0; seed < 20; seed++) {
      const text = writeText(seed, 2_000);
      expect(matcher.getAllMatches(text)).toEqual([]);
      expect(matcher.getAllMatches(text.replace(/[ .]/g, ''))).toEqual([]);
    }
  });
});
