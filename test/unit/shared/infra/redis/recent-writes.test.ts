import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';

import { createRecentWrites } from '../../../../../shared/infra/redis/recent-writes.ts';
import { systemClock } from '../../../../../shared/lifecycle/clock.ts';
import { createRecordingLog } from '../../../../support/recording-log.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('repeats every write, the latest first, and those that fail until they are done', async () => {
  const done: string[] = [];
  let refusals = 2;
  const writes = createRecentWrites({
    hasReconnectedRecently: () => false,
    clock: systemClock,
    log: createRecordingLog(),
  });
  const noting = (name: string) => () => {
    done.push(name);
    return Promise.resolve();
  };
  writes.note(noting('first'));
  writes.note(() => {
    if (refusals === 0) return noting('refused')();
    refusals -= 1;
    return Promise.reject(new Error('NOREPLICAS Not enough good replicas to write.'));
  });
  writes.note(noting('last'));

  const repeating = writes.repeatAll();
  await Promise.resolve();
  expect(done).toEqual(['last', 'first']);
  await jest.advanceTimersByTimeAsync(1_000);
  await repeating;

  expect(done).toEqual(['last', 'first', 'refused']);
});
