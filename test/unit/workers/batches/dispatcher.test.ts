import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';

import { systemClock } from '../../../../shared/lifecycle/clock.ts';
import type { BatchRow } from '../../../../shared/mongo/batches/batch-repository.ts';
import { createDispatcher } from '../../../../workers/batches/dispatcher.ts';
import type { DispatcherDeps } from '../../../../workers/batches/dispatcher.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

const rowOf = (_id: string, status: BatchRow['status'] = 'in_progress'): BatchRow => ({
  ...{ _id, tenantId: 'ten_1', keyId: 'key_1', shard: 0, mode: 'live', status, waitingFor: null },
  ...{ total: 1, completed: 0, failed: 0, createdAt: 0, expiresAt: 1, removeAt: new Date(0) },
});

/** Two batches; what is done for the first one throws. */
function dispatching(
  fault: Error | undefined,
  status: BatchRow['status'],
  during?: 'lead lost' | 'Redis back',
  decide: DispatcherDeps['queue']['decide'] = (_shard, _batchId, state) => Promise.resolve(state),
) {
  const abandoned: string[] = [];
  const collected: string[] = [];
  const filled: string[][] = [];
  const noted: string[] = [];
  const createdAt = systemClock.now();
  let isOver = false;
  const log = createRecordingLog();
  const failFor = (batchId: string) =>
    fault !== undefined && batchId === 'batch_1' ? Promise.reject(fault) : Promise.resolve();
  const dispatcher = createDispatcher({
    work: {
      open: () => Promise.resolve([{ ...rowOf('batch_1', status), createdAt }, rowOf('batch_2')]),
      count: () => Promise.resolve({ completed: 0, failed: 0 }),
      recordProgress: (_tenant, batchId) => {
        noted.push(batchId);
        return Promise.resolve();
      },
      removeUnstarted: (_tenant, batchId, was) => {
        abandoned.push(`${batchId} ${was}`);
        return Promise.resolve();
      },
    },
    collectEnds: async ({ row }) => {
      await failFor(row._id);
      collected.push(row._id);
    },
    closeBatch: { closeIfDue: () => Promise.resolve(false), publish: ({ row }) => failFor(row._id) },
    fillQueue: (_shard, batches) => {
      filled.push(batches.map(({ row }) => row._id));
      // The process stands still here for longer than its lease.
      isOver = true;
      return Promise.resolve();
    },
    queue: { decide },
    watch: { isDown: () => false },
    leases: {
      hold: () => Promise.resolve(true),
      renew: () => Promise.resolve(!(isOver && during === 'lead lost')),
      release: () => Promise.resolve(),
    },
    hasReconnectedRecently: () => isOver && during === 'Redis back',
    clock: systemClock,
    log,
  });
  return { dispatcher, collected, filled, noted, abandoned, log };
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it.each(['in_progress', 'completed'] as const)(
  'goes on with the other batches where one that is %s is at fault, and tries it again seconds later',
  async (status) => {
    const { dispatcher, collected, filled, log } = dispatching(new SyntaxError('Unexpected end'), status);

    for (let round = 0; round < 3; round += 1) {
      await dispatcher.dispatchShard(0);
      jest.advanceTimersByTime(1_000);
    }

    expect(collected).toEqual(['batch_2', 'batch_2', 'batch_2']);
    expect(filled).toEqual([['batch_2'], ['batch_2'], ['batch_2']]);
    expect(log.errors()).toEqual(['A batch cannot go on; it is tried again shortly. Unexpected end']);
    jest.advanceTimersByTime(5_000);
    await dispatcher.dispatchShard(0);
    expect(log.errors()).toHaveLength(2);
  },
);

it('ends a round where a store does not answer', async () => {
  const { dispatcher, collected } = dispatching(new Error('Connection is closed.'), 'in_progress');

  await expect(dispatcher.dispatchShard(0)).rejects.toThrow('Connection is closed.');

  expect(collected).toEqual([]);
});

it('takes away an upload once it can no longer arrive, and not while it comes at the slowest pace', async () => {
  const { dispatcher, abandoned } = dispatching(undefined, 'validating');
  // The server waits for a request that long.
  jest.advanceTimersByTime(1_250_000);
  await dispatcher.dispatchShard(0);
  expect(abandoned).toEqual([]);

  jest.advanceTimersByTime(1_800_000);
  await dispatcher.dispatchShard(0);

  expect(abandoned).toEqual(['batch_1 validating']);
});

it('takes away what was refused as it started, and sends nothing of it', async () => {
  const { dispatcher, filled, abandoned } = dispatching(undefined, 'in_progress', undefined, (_shard, batchId, state) =>
    Promise.resolve(batchId === 'batch_1' ? 'refused' : state),
  );

  await dispatcher.dispatchShard(0);

  expect(abandoned).toEqual(['batch_1 in_progress']);
  expect(filled).toEqual([['batch_2']]);
});

it('goes on with the other batches where Redis takes up no new one', async () => {
  const { dispatcher, filled, abandoned } = dispatching(
    undefined,
    'in_progress',
    undefined,
    (_shard, batchId, state) =>
      batchId === 'batch_1' ? Promise.reject(new Error('OOM command not allowed')) : Promise.resolve(state),
  );

  await dispatcher.dispatchShard(0);

  expect(abandoned).toEqual([]);
  expect(filled).toEqual([['batch_2']]);
});

it.each([
  ['tells what has changed while it leads', undefined, ['batch_1', 'batch_2']],
  ['tells nothing where another process may lead, which tells only what changes', 'lead lost', []],
  ['does nothing more of a round in which Redis came back: workers may yet replay what it has lost', 'Redis back', []],
] as const)('%s', async (_what, during, expected) => {
  const { dispatcher, noted } = dispatching(undefined, 'in_progress', during);

  await dispatcher.dispatchShard(0);

  expect(noted).toEqual(expected);
});
