import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { firstTokenLimit, startProviderCallClock } from '../../../../workers/pipeline/run-provider-call.ts';
import { listenersOf } from '../../../support/signals.ts';

const TIMES = { firstTokenMs: 100, silenceMs: 50, totalMs: 1_000 };

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

  it('goes on while anything arrives, text or not, within the limit for the whole', () => {
    const clock = startProviderCallClock(new AbortController().signal, TIMES);
    jest.advanceTimersByTime(99);
    clock.begin();
    for (let ping = 0; ping < 18; ping += 1) {
      jest.advanceTimersByTime(49);
      clock.touch();
    }

    expect(clock.signal.aborted).toBe(false);
    jest.advanceTimersByTime(50);
    expect(clock.signal.reason).toMatchObject({ message: expect.stringContaining('within 1000 ms') });
  });

  it('ends where nothing arrives behind the first text', () => {
    const clock = startProviderCallClock(new AbortController().signal, TIMES);
    clock.begin();
    jest.advanceTimersByTime(50);

    expect(clock.signal.reason).toMatchObject({ message: expect.stringContaining('within 50 ms') });
    clock.stop();
  });

  it('leaves neither timers nor listeners behind', () => {
    const outer = new AbortController();
    for (let call = 0; call < 20; call += 1) {
      const clock = startProviderCallClock(outer.signal, TIMES);
      clock.begin();
      clock.stop();
    }

    expect(jest.getTimerCount()).toBe(0);
    expect(listenersOf(outer.signal)).toBe(0);
  });
});
