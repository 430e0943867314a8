import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import {
  ProviderTimeout,
  firstTokenLimit,
  startProviderCallClock,
} from '../../../../workers/pipeline/run-provider-call.ts';
import { listenersOf } from '../../../support/signals.ts';

const TIMES = { firstTokenMs: 100, betweenTokensMs: 50, totalMs: 1_000 };

it.each([
  [0, 15_000],
  [4_000, 35_000],
  [9_000, 60_000],
  [128_000, 60_000],
])('a prompt of %d tokens may be read for so long: %d ms', (promptTokens, limitMs) => {
  expect(firstTokenLimit(15_000, promptTokens)).toBe(limitMs);
});

describe('the clock of one provider call', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('ends a call whose first token does not come in time', () => {
    const { signal } = startProviderCallClock(new AbortController().signal, TIMES);

    jest.advanceTimersByTime(99);
    expect(signal.aborted).toBe(false);
    jest.advanceTimersByTime(1);

    expect(signal.reason).toBeInstanceOf(ProviderTimeout);
    expect(String(signal.reason)).toContain('no first token within 100 ms');
  });

  it('ends a call that falls silent after a token', () => {
    const { signal, tick } = startProviderCallClock(new AbortController().signal, TIMES);

    for (let tokens = 0; tokens < 5; tokens += 1) {
      tick();
      jest.advanceTimersByTime(49);
    }
    expect(signal.aborted).toBe(false);
    jest.advanceTimersByTime(1);

    expect(String(signal.reason)).toContain('no next token within 50 ms');
  });

  it('ends a call that never falls silent and never ends', () => {
    const { signal, tick } = startProviderCallClock(new AbortController().signal, TIMES);

    for (let passed = 0; passed < 1_000; passed += 20) {
      tick();
      jest.advanceTimersByTime(20);
    }

    expect(String(signal.reason)).toContain('no end of the answer within 1000 ms');
  });

  it('the clock of one provider call passes on why the request was stopped', () => {
    const outer = new AbortController();
    const reason = new Error('cancelled');
    const { signal } = startProviderCallClock(outer.signal, TIMES);

    outer.abort(reason);

    expect(signal.reason).toBe(reason);
  });

  it('is over at once where the request was stopped before it began', () => {
    const reason = new Error('cancelled');

    expect(startProviderCallClock(AbortSignal.abort(reason), TIMES).signal.reason).toBe(reason);
  });

  it('leaves neither timers nor listeners behind', () => {
    const outer = new AbortController();
    for (let call = 0; call < 20; call += 1) {
      const clock = startProviderCallClock(outer.signal, TIMES);
      clock.tick();
      clock.stop();
    }

    expect(jest.getTimerCount()).toBe(0);
    expect(listenersOf(outer.signal)).toBe(0);
  });
});
