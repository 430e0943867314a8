import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { createSchedule } from '../../../../scripts/simulated-provider/schedule.ts';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

it('lets each delta wait for its own time, counted from the start', () => {
  const schedule = createSchedule({ firstTokenMs: 200, chunkMs: 20 });
  const act = jest.fn();

  expect(schedule.waits(0, act)).toBe(true);
  jest.advanceTimersByTime(199);
  expect(act).not.toHaveBeenCalled();
  jest.advanceTimersByTime(46);
  expect(act).toHaveBeenCalledTimes(1);

  // 245 ms have passed: the deltas due at 200, 220 and 240 ms wait for nothing, the one at 260 does.
  expect([0, 1, 2, 3].map((index) => schedule.waits(index, act))).toEqual([false, false, false, true]);
});

it('calls nothing after it was cancelled', () => {
  const schedule = createSchedule({ firstTokenMs: 200, chunkMs: 20 });
  const act = jest.fn();
  schedule.waits(3, act);
  schedule.cancel();
  jest.advanceTimersByTime(1_000);

  expect(act).not.toHaveBeenCalled();
});
