import { describe, expect, it } from '@jest/globals';

import { brokenBy, spoilReading } from './sound-evidence.ts';

describe('I9', () => {
  const change = (text: string, more: object = {}) => ({ text, ...more });

  it.each([
    ['lacks its end', change('Kingfisher-river-river-river says')],
    ['is of two answers', change('Kingfisher-river-river-river says that the sky is green', { finishReason: 'error' })],
  ])('finds a stream in Redis that %s', (_, change) => {
    const broken = brokenBy((evidence) => {
      evidence.records = evidence.records?.map((record, index) => (index === 0 ? { ...record, ...change } : record));
    });
    expect(broken).toEqual(['I9']);
  });

  it('finds a kept answer that is another one’s', () => {
    const broken = brokenBy((evidence) => {
      evidence.keptAnswers = evidence.keptAnswers.map((answer) => ({ ...answer, requestId: 'req_a' }));
    });
    expect(broken).toEqual(['I9']);
  });

  it('finds text that a client has read and the stream has not, where the answer is not known beforehand', () => {
    const broken = brokenBy((evidence) => {
      evidence.provider = new Map(
        [...evidence.provider].map(([id, { calls, promptTokens, completionTokens }]) => [
          id,
          { calls, promptTokens, completionTokens },
        ]),
      );
      evidence.records = evidence.records?.map((record, index) =>
        index === 0 ? { ...record, text: 'Kingfisher-river-river-river says' } : record,
      );
    });
    expect(broken).toEqual(['I9']);
  });

  it('takes an answer that ended early for its beginning', () => {
    const broken = brokenBy((evidence) => {
      const text = 'Kingfisher-river-river-river says';
      spoilReading(evidence, { text, finishReason: 'length' });
      evidence.records = evidence.records?.map((record, index) =>
        index === 0 ? { ...record, text, finishReason: 'length' } : record,
      );
    });
    expect(broken).toEqual([]);
  });
});
