import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { withRetries } from '../../../../workers/providers/http-call.ts';
import type { RetryPolicy } from '../../../../workers/providers/http-call.ts';

const ALWAYS: RetryPolicy = {
  retries: 3,
  mayRetry: () => true,
  retryAfterMs: () => 0,
  signal: new AbortController().signal,
};

/** Fails so many times, then gives its own number. */
function failing(times: number) {
  const calls: number[] = [];
  return {
    calls,
    attempt: (number: number) => {
      calls.push(number);
      return number <= times ? Promise.reject(new Error(`failure ${number}`)) : Promise.resolve(number);
    },
  };
}

describe('tries again', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('as often as it may, and then gives the last error', async () => {
    const { attempt, calls } = failing(99);

    const result = expect(withRetries(attempt, ALWAYS)).rejects.toThrow('failure 4');
    await jest.advanceTimersByTimeAsync(60_000);

    await result;
    expect(calls).toHaveLength(4);
  });

  it('after a pause that grows', async () => {
    const at: number[] = [];
    const attempt = () => {
      at.push(Date.now());
      return Promise.reject(new Error('no'));
    };

    const result = withRetries(attempt, ALWAYS).catch(() => undefined);
    await jest.advanceTimersByTimeAsync(60_000);
    await result;

    const pauses = at.slice(1).map((time, index) => time - (at[index] ?? 0));
    for (const [index, least] of [150, 300, 600].entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(least);
      expect(pauses[index]).toBeLessThanOrEqual(least * 2);
    }
  });

  it('not before the other side asks for it, and after a pause of its own', async () => {
    jest.useRealTimers();
    const startedAt = performance.now();

    const result = await withRetries(failing(1).attempt, { ...ALWAYS, retryAfterMs: () => 300 });

    expect(result).toBe(2);
    // 300 ms as asked for and 150 to 300 ms of its own; a timer may be some milliseconds early.
    expect(performance.now() - startedAt).toBeGreaterThan(440);
  });

  it.each([
    ['in the pause', 0],
    ['while it waits as it was asked to', 5_000],
  ])('no more once it is stopped %s, and says why', async (_when, askedMs) => {
    const controller = new AbortController();
    const reason = new Error('stopped');
    const { attempt, calls } = failing(99);
    const policy = { ...ALWAYS, retryAfterMs: () => askedMs, signal: controller.signal };

    const result = expect(withRetries(attempt, policy)).rejects.toBe(reason);
    await jest.advanceTimersByTimeAsync(100);
    controller.abort(reason);
    await jest.advanceTimersByTimeAsync(0);

    await result;
    expect(calls).toEqual([1]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('not at all where it is stopped before, and gives nothing that came after it was stopped', async () => {
    const controller = new AbortController();
    const reason = new Error('stopped');
    const policy = { ...ALWAYS, signal: controller.signal };
    const stopping = () => {
      controller.abort(reason);
      return Promise.resolve('an answer');
    };

    await expect(withRetries(stopping, policy)).rejects.toBe(reason);
    const { attempt, calls } = failing(0);
    await expect(withRetries(attempt, policy)).rejects.toBe(reason);

    expect(calls).toEqual([]);
  });
});
