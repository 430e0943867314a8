import { describe, expect, it } from '@jest/globals';
import { moderate, parseModerationRequest } from '../../../../scripts/simulated-provider/moderate.ts';

describe('moderate', () => {
  it('flags nothing in plain text', () => {
    const result = moderate('How do plants make sugar?');

    expect(result.flagged).toBe(false);
    expect(Object.values(result.categories)).not.toContain(true);
    expect(Object.keys(result.categories)).toEqual(Object.keys(result.category_scores));
  });

  it.each([
    ['simulate-flagged', 'violence', 0.99],
    ['say SIMULATE-HATE now', 'hate', 0.99],
    ['simulate-self-harm/intent', 'self-harm/intent', 0.99],
    ['simulate-sexual=0.5.', 'sexual', 0.5],
    ['This is a parley-moderation-test.', 'test', 0.99],
    ['Parley Moderation\ntest', 'test', 0.99],
    ['simulate-illicit=0.7 simulate-illicit=0.2', 'illicit', 0.7],
  ])('flags %j as %s with its score', (text, category, score) => {
    const { flagged, categories, category_scores: scores } = moderate(text);

    expect(flagged).toBe(true);
    expect(Object.keys(categories).filter((name) => categories[name])).toEqual([category]);
    expect(scores[category]).toBe(score);
  });

  it('scores below 0.5 without flagging', () => {
    expect(moderate('simulate-violence=0.3')).toMatchObject({ flagged: false, category_scores: { violence: 0.3 } });
  });
});

describe('parseModerationRequest', () => {
  it.each<[unknown, string[]]>([
    ['a', ['a']],
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
    [
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      ['a\nb'],
    ],
  ])('reads the input %j', (input, inputs) => {
    expect(parseModerationRequest({ input }).inputs).toEqual(inputs);
  });

  it.each([undefined, null, 3, [], [1], ['a', 1], [{ type: 'image_url' }]])('refuses the input %j', (input) => {
    expect(() => parseModerationRequest({ input })).toThrow(expect.objectContaining({ status: 400, param: 'input' }));
  });
});
