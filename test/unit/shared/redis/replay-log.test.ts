import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';

import { createReplayLog } from '../../../../shared/redis/redis-return.ts';
import type { ReplayLog } from '../../../../shared/redis/redis-return.ts';
import { systemClock } from '../../../../shared/lifecycle/clock.ts';
import { REPLAYED_MS } from '../../../../workers/pipeline/claim.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';
import type { RecordingLog } from '../../../support/recording-log.ts';

/** The way to Redis and back. */
const WAY_MS = 20;
const COUNT = 500;

let log: RecordingLog;
let writes: ReplayLog;
let done: string[];
beforeEach(() => {
  jest.useFakeTimers();
  log = createRecordingLog();
  writes = createReplayLog({ hasReconnectedRecently: () => false, clock: systemClock, log });
  done = [];
});
afterEach(() => {
  jest.useRealTimers();
});

function note(requestId: string, write: () => Promise<unknown> = () => Promise.resolve()): void {
  const repeat = async () => {
    await write();
    done.push(requestId);
  };
  writes.note(repeat, { requestId });
}

function recordMany(write: () => Promise<unknown>): void {
  for (let index = 0; index < COUNT; index += 1) note(`req_${index}`, write);
}

const onTheWay = () => new Promise((resolve) => setTimeout(resolve, WAY_MS));

it('repeats every write, the latest first, and those that fail until they are done', async () => {
  let refusals = 2;
  note('first');
  note('refused', () => {
    if (refusals === 0) return Promise.resolve();
    refusals -= 1;
    return Promise.reject(new Error('NOREPLICAS Not enough good replicas to write.'));
  });
  note('last');

  const repeating = writes.replay();
  await jest.advanceTimersByTimeAsync(0);
  expect(done).toEqual(['last', 'first']);
  await jest.advanceTimersByTimeAsync(1_000);
  await repeating;

  expect(done).toEqual(['last', 'first', 'refused']);
});

it('repeats a write that failed as it was performed, and rejects as it does', async () => {
  let isAway = true;
  const write = () => {
    if (isAway) return Promise.reject(new Error('Connection is closed.'));
    done.push('performed');
    return Promise.resolve();
  };

  await expect(writes.perform(write, {})).rejects.toThrow('Connection is closed.');
  isAway = false;
  await writes.replay();

  expect(done).toEqual(['performed']);
});

it('repeats hundreds before workers run anything again, although one hangs and one cannot be repeated', async () => {
  const bad = Object.assign(new Error('WRONGTYPE Operation against a key'), { name: 'ReplyError' });
  const hanging = Promise.withResolvers<undefined>();
  recordMany(onTheWay);
  note('bad', () => Promise.reject(bad));
  note('hanging', () => hanging.promise);

  const repeating = writes.replay();
  await jest.advanceTimersByTimeAsync(REPLAYED_MS);

  expect(done).toHaveLength(COUNT);
  expect(done[0]).toBe(`req_${COUNT - 1}`);
  expect(log.lines).toMatchObject([{ level: 'error', fields: { requestId: 'bad', error: bad } }]);
  hanging.resolve(undefined);
  await repeating;
});

it('begins anew where Redis comes back once more, with no more calls under way than before', async () => {
  let [running, most] = [0, 0];
  recordMany(async () => {
    running += 1;
    most = Math.max(most, running);
    await onTheWay();
    running -= 1;
  });
  const repeating = [writes.replay()];
  const atOnce = running;
  await jest.advanceTimersByTimeAsync(2 * WAY_MS);
  done = [];

  repeating.push(writes.replay());
  await jest.advanceTimersByTimeAsync(REPLAYED_MS);
  await Promise.all(repeating);

  expect(new Set(done).size).toBe(COUNT);
  expect(most).toBe(atOnce);
});

it('forgets no write for its age before it is repeated, however often Redis comes back', async () => {
  let isRefusing = true;
  note('refused', () => (isRefusing ? Promise.reject(new Error('NOREPLICAS')) : Promise.resolve()));
  const repeating = [writes.replay()];
  await jest.advanceTimersByTimeAsync(12_000);
  note('later');

  repeating.push(writes.replay());
  isRefusing = false;
  await jest.advanceTimersByTimeAsync(1_000);
  await Promise.all(repeating);

  expect(done.toSorted()).toEqual(['later', 'refused']);
});

it('repeats again what is under way while Redis comes back, and what was repeated a moment ago', async () => {
  const slow = Promise.withResolvers<undefined>();
  note('slow', () => slow.promise);
  note('quick');
  await jest.advanceTimersByTimeAsync(8_000);
  const repeating = [writes.replay()];
  await jest.advanceTimersByTimeAsync(3_000);
  expect(done).toEqual(['quick']);

  note('later');
  repeating.push(writes.replay());
  slow.resolve(undefined);
  await Promise.all(repeating);

  expect(done.toSorted()).toEqual(['later', 'quick', 'quick', 'slow', 'slow']);
});

it('repeats no more than the latest 5,000, which hold texts of answers', async () => {
  for (let number = 0; number < 5_003; number += 1) note(`req_${number}`);

  await writes.replay();

  expect([done.length, done[0], done.at(-1)]).toEqual([5_000, 'req_5002', 'req_3']);
});

it('repeats the writes of the shards that are back, and none of them waits for those of a master that is away', async () => {
  const gone = 0;
  writes = createReplayLog({ hasReconnectedRecently: (shard) => shard === gone, clock: systemClock, log });
  for (let number = 0; number < COUNT; number += 1)
    writes.note(() => new Promise(() => undefined), { shard: gone, requestId: `lost_${number}` });
  void writes.replay((shard) => shard === gone);
  await jest.advanceTimersByTimeAsync(20_000);
  let lost = 0;
  writes.note(() => Promise.resolve((lost += 1)), { shard: gone });
  writes.note(() => Promise.resolve(done.push('other')), { shard: 1 });

  await writes.replay((shard) => shard === 1);

  expect([done, lost]).toEqual([['other'], 0]);
});
