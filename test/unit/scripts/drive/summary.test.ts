import { describe, expect, it } from '@jest/globals';

import type { TurnRecord } from '../../../../scripts/drive/drive.ts';
import { renderSummary, summarise } from '../../../../scripts/drive/summary.ts';

const RATES = { mobius: { prompt: 1, completion: 1 }, oloid: { prompt: 4, completion: 4 } };

function recordOf(changes: Partial<TurnRecord> = {}): TurnRecord {
  return {
    requestId: 'req_1',
    model: 'mobius',
    text: 'Answer',
    finishReason: 'stop',
    promptTokens: 10,
    completionTokens: 5,
    error: undefined,
    latencyMs: 100,
    firstTokenMs: undefined,
    waits: 0,
    conversation: '81',
    entityId: 'drive-1-81',
    turn: 1,
    turns: 2,
    stream: false,
    submitted: [],
    ...changes,
  };
}

describe('summarise', () => {
  it('counts credits at the rate of the tier that answered', () => {
    const records = [recordOf(), recordOf({ model: 'oloid' })];

    expect(summarise(records, { conversations: 1, turns: 2 }, RATES, 1_000).credits).toBe(15 + 60);
  });

  it('keeps failed requests out of the latencies and counts them by code', () => {
    const records = [
      recordOf(),
      recordOf({ latencyMs: 90_000, error: 'timeout' }),
      recordOf({ latencyMs: 90_000, error: 'timeout' }),
    ];

    const { latencyMs, errors } = summarise(records, { conversations: 3, turns: 3 }, RATES, 1_000);

    expect(latencyMs?.p99).toBeCloseTo(100, 0);
    expect(errors).toEqual({ timeout: 2 });
  });

  it('says how many turns were not sent', () => {
    expect(summarise([recordOf({ error: 'timeout' })], { conversations: 1, turns: 2 }, RATES, 1_000).left).toBe(1);
  });
});

describe('renderSummary', () => {
  it('shows a drive of which nothing was answered', () => {
    const summary = summarise([], { conversations: 1, turns: 2 }, RATES, 1_000);

    expect(renderSummary(summary, false, undefined)).toMatch(/Latency +-\n/);
  });

  it('prefers what the balance fell by to what the usage says', () => {
    const summary = summarise([recordOf()], { conversations: 1, turns: 1 }, RATES, 1_000);

    expect(renderSummary(summary, false, 16)).toContain("16 charged (usage at the tiers' rates: 15)");
  });
});
