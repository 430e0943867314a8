import { describe, expect, it } from '@jest/globals';
import { DEFAULT_MODERATION_POLICY, judge } from '../../../../workers/moderation/moderator.ts';

describe('judge', () => {
  it('flags a category from its threshold on', () => {
    const policy = { disabled: [], thresholds: { violence: 0.8 } };
    expect(judge({ violence: 0.79 }, policy).flagged).toBe(false);
    expect(judge({ violence: 0.8 }, policy).categories).toEqual(['violence']);
  });

  it('names the flagged categories in order, and keeps all scores', () => {
    const scores = { violence: 0.9, hate: 0.6, sexual: 0.4 };
    expect(judge(scores, DEFAULT_MODERATION_POLICY)).toEqual({
      flagged: true,
      categories: ['hate', 'violence'],
      scores,
    });
  });

  it('flags categories that only a remote backend knows', () => {
    expect(judge({ 'violence/graphic': 0.7 }, DEFAULT_MODERATION_POLICY).flagged).toBe(true);
  });

  it('does not flag a score of zero at a threshold of zero', () => {
    expect(judge({ hate: 0 }, { disabled: [], thresholds: { hate: 0 } }).flagged).toBe(false);
  });

  it('flags test whatever the policy says', () => {
    expect(judge({ test: 1 }, { disabled: ['test'], thresholds: { test: 1 } }).categories).toEqual(['test']);
  });

  it('flags no test for the low score that a backend gives everything', () => {
    expect(judge({ test: 0.0001 }, DEFAULT_MODERATION_POLICY).flagged).toBe(false);
  });

  it('takes a backend’s own flag where the tenant has set no threshold', () => {
    const flagged = new Set(['hate']);
    expect(judge({ hate: 0.2 }, DEFAULT_MODERATION_POLICY, flagged).categories).toEqual(['hate']);
    expect(judge({ hate: 0.2 }, { disabled: [], thresholds: { hate: 0.3 } }, flagged).flagged).toBe(false);
    expect(judge({ hate: 0.2 }, { disabled: ['hate'], thresholds: {} }, flagged).flagged).toBe(false);
  });
});
