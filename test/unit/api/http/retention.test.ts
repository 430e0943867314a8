import { describe, expect, it } from '@jest/globals';

import { retentionOf } from '../../../../api/http/request-terms.ts';

const DAY_MS = 86_400_000;
const settings = { ordinaryMs: 900_000, storedAnswerMs: DAY_MS };
const of = (retentionSeconds: number | undefined, callerMayReturn: boolean) =>
  retentionOf(retentionSeconds === undefined ? {} : { retentionSeconds }, callerMayReturn, settings);

describe('how long an answer stays', () => {
  it('is the service’s time without one of the tenant', () => {
    expect(of(undefined, false)).toEqual({ retentionMs: 900_000, answerStorage: undefined, hasIntent: false });
    expect(of(undefined, true)).toEqual({ retentionMs: DAY_MS, answerStorage: {}, hasIntent: true });
  });

  it('is nothing at all where the tenant keeps nothing, whatever the call asks for', () => {
    const nothing = { retentionMs: 0, answerStorage: undefined, hasIntent: false };
    expect([of(0, false), of(0, true)]).toEqual([nothing, nothing]);
  });

  it('is Redis’s affair up to the service’s time, and under a key the request survives Redis all the same', () => {
    expect(of(60, false)).toEqual({ retentionMs: 60_000, answerStorage: undefined, hasIntent: false });
    expect(of(60, true)).toEqual({ retentionMs: 60_000, answerStorage: { redisOnly: true }, hasIntent: true });
    expect(of(900, true)).toEqual({ retentionMs: 900_000, answerStorage: { redisOnly: true }, hasIntent: true });
  });

  it('is MongoDB’s affair beyond it, so that Redis holds no more than without', () => {
    const week = { storedMs: 7 * DAY_MS };
    expect(of(7 * 86_400, false)).toEqual({ retentionMs: 900_000, answerStorage: week, hasIntent: false });
    expect(of(7 * 86_400, true)).toEqual({ retentionMs: DAY_MS, answerStorage: week, hasIntent: true });
    expect(of(3_600, true)).toEqual({
      retentionMs: 3_600_000,
      answerStorage: { storedMs: 3_600_000 },
      hasIntent: true,
    });
  });
});
