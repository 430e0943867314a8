import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';

import type { BatchRow } from '../../../../shared/mongo/batches/batch-repository.ts';
import { systemClock } from '../../../../shared/lifecycle/clock.ts';
import { createRefreshShard, emptyShard } from '../../../../workers/batches/shard-batches.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

const ROW: BatchRow = {
  ...{ _id: 'batch_1', tenantId: 'ten_1', keyId: 'key_1', shard: 0, mode: 'live', status: 'in_progress' },
  ...{ waitingFor: null, total: 2, completed: 0, failed: 0, createdAt: 0, expiresAt: 1, removeAt: new Date(0) },
};

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('counts a batch again when a failed line of it was set waiting, which would count twice at its next end', async () => {
  const stored = { row: ROW, counts: { completed: 1, failed: 1 } };
  let counted = 0;
  const refresh = createRefreshShard({
    work: {
      open: () => Promise.resolve([stored.row]),
      count: () => {
        counted += 1;
        return Promise.resolve(stored.counts);
      },
      removeUnstarted: () => Promise.resolve(),
    },
    queue: { decide: (_shard, _batchId, state) => Promise.resolve(state) },
    closeBatch: { publish: () => Promise.resolve() },
    doForBatch: (_shard, _batchId, act) => act(),
    clock: systemClock,
    log: createRecordingLog(),
  });
  const shard = emptyShard();
  const round = async () => {
    await refresh(0, shard);
    jest.advanceTimersByTime(1_000);
    return shard.open.get('batch_1')?.counts;
  };
  expect(await round()).toEqual({ completed: 1, failed: 1 });

  stored.row = { ...ROW, reopened: 1 };
  stored.counts = { completed: 1, failed: 0 };

  expect(await round()).toEqual({ completed: 1, failed: 0 });
  await round();
  expect(counted).toBe(2);
});
