import { describe, expect, it } from '@jest/globals';

import { parseModeration } from '../../../../workers/moderation/openai-moderator.ts';

const parse = (results: unknown, count = 1) => parseModeration(JSON.stringify({ id: 'modr-1', results }), count);

describe('the answer of a moderation endpoint', () => {
  it('gives the highest score of each category over all texts', () => {
    const results = [
      { flagged: false, categories: { hate: false }, category_scores: { hate: 0.1, violence: 0.4 } },
      { flagged: true, categories: { hate: true, violence: false }, category_scores: { hate: 0.3, violence: 0.2 } },
    ];

    expect(parse(results, 2)).toEqual({ scores: { hate: 0.3, violence: 0.4 }, flagged: new Set(['hate']) });
  });

  it.each([
    [{ flagged: true, categories: { hate: true, violence: false } }, { hate: 1 }],
    [{ flagged: true }, { unspecified: 1 }],
    [
      { flagged: true, categories: {}, category_scores: { toxicity: 0.2 } },
      { toxicity: 0.2, unspecified: 1 },
    ],
    [{ flagged: true, categories: { hate: false }, category_scores: {} }, { unspecified: 1 }],
    [{ flagged: true, category_scores: { violence: 0.9 } }, { violence: 0.9 }],
    [{ flagged: false }, {}],
    [{ flagged: false, category_scores: { hate: null } }, {}],
  ])('the answer of a moderation endpoint does without scores, and without a category: %j', (result, scores) => {
    expect(parse([result]).scores).toEqual(scores);
  });

  it.each([[undefined], [{}], [[]], [[{ flagged: false }, { flagged: false }]], [[null]], [[{ flagged: 'no' }]]])(
    'that has not one verdict for each text is none: %j',
    (results) => {
      expect(() => parse(results)).toThrow('The moderation endpoint');
    },
  );

  it('the answer of a moderation endpoint that is not JSON is none', () => {
    expect(() => parseModeration('<html>', 1)).toThrow('not JSON');
  });
});
