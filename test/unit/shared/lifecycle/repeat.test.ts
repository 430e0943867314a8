import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';

import { repeat } from '../../../../shared/lifecycle/clock.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const noError = (error: unknown) => {
  throw error;
};

it('runs at once and then again after each pause', async () => {
  let runs = 0;
  const repeating = repeat(
    () => Promise.resolve((runs += 1)),
    () => 100,
    noError,
  );

  await jest.advanceTimersByTimeAsync(250);
  await repeating.stop();

  expect(runs).toBe(3);
});

it('never runs twice at the same time', async () => {
  let running = 0;
  let most = 0;
  const repeating = repeat(
    async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 500));
      running -= 1;
    },
    () => 10,
    noError,
  );

  await jest.advanceTimersByTimeAsync(3_000);
  const stopped = repeating.stop();
  await jest.advanceTimersByTimeAsync(500);
  await stopped;

  expect(most).toBe(1);
});

it('goes on after a failed run', async () => {
  const errors: unknown[] = [];
  const fault = new Error('gone');
  let runs = 0;
  const repeating = repeat(
    () => (++runs === 1 ? Promise.reject(fault) : Promise.resolve()),
    () => 10,
    (error) => errors.push(error),
  );

  await jest.advanceTimersByTimeAsync(15);
  await repeating.stop();

  expect(errors).toEqual([fault]);
  expect(runs).toBe(2);
});

it('waits at its stop for the run under way and begins no other', async () => {
  const end = Promise.withResolvers<undefined>();
  let runs = 0;
  let stopped = false;
  const repeating = repeat(
    () => {
      runs += 1;
      return end.promise;
    },
    () => 0,
    noError,
  );

  const stopping = repeating.stop().then(() => (stopped = true));
  await jest.advanceTimersByTimeAsync(1_000);
  expect(stopped).toBe(false);
  end.resolve(undefined);
  await stopping;
  await jest.advanceTimersByTimeAsync(1_000);

  expect(runs).toBe(1);
  expect(jest.getTimerCount()).toBe(0);
});
