import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';

import { createFlushSchedule } from '../../../../workers/pipeline/chunk-writer.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('all that wait for a beat have the same one, and the next comes its time later', async () => {
  const { next } = createFlushSchedule(80);
  const heard: [string, number][] = [];
  const hear = (name: string) => () => heard.push([name, performance.now()]);
  next(hear('a'));
  await jest.advanceTimersByTimeAsync(10);
  next(() => {
    hear('b')();
    next(hear('c'));
  });

  await jest.advanceTimersByTimeAsync(200);

  const [first = 0, second, third = 0] = heard.map(([, at]) => at);
  expect(heard.map(([name]) => name)).toEqual(['a', 'b', 'c']);
  expect(second).toBe(first);
  expect(third - first).toBe(80);
});

it('who asks just before a beat gets the one after it', async () => {
  const { next } = createFlushSchedule(80);
  await jest.advanceTimersByTimeAsync(79 - (performance.now() % 80));
  const act = jest.fn();

  next(act);
  await jest.advanceTimersByTimeAsync(80);
  expect(act).not.toHaveBeenCalled();
  await jest.advanceTimersByTimeAsync(1);

  expect(act).toHaveBeenCalledTimes(1);
});

it('a beat that nobody waits for any more leaves no timer behind', () => {
  const { next } = createFlushSchedule(80);
  const act = jest.fn();

  next(act)();

  expect(jest.getTimerCount()).toBe(0);
});
