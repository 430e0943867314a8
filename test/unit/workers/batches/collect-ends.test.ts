import { expect, it } from '@jest/globals';

import { encodeEntry } from '../../../../shared/contracts/events.ts';
import type { BatchRow } from '../../../../shared/infra/mongo/batches/batch-repository.ts';
import { createCollectEnds } from '../../../../workers/batches/collect-ends.ts';
import { openBatch } from '../../../../workers/batches/open-batch.ts';

const ROW: BatchRow = {
  ...{
    _id: 'bat_1',
    tenantId: 'ten_1',
    keyId: 'key_1',
    shard: 0,
    mode: 'live',
    status: 'in_progress',
    waitingFor: null,
  },
  ...{ total: 1, completed: 0, failed: 0, createdAt: 0, expiresAt: 1, removeAt: new Date(0) },
};
const ENTRY = encodeEntry(['Yes'], { finishReason: 'stop', usage: { promptTokens: 10, completionTokens: 90 } });

it('learns from an end once, however often its result could not be stored', async () => {
  const batch = openBatch(ROW, { completed: 0, failed: 0 });
  batch.inFlight.set(0, { index: 0, requestId: 'req_1', promptTokens: 0 });
  let failuresLeft = 16;
  const collect = createCollectEnds({
    work: {
      end: () => {
        failuresLeft -= 1;
        return failuresLeft >= 0 ? Promise.reject(new Error('MongoDB is away')) : Promise.resolve(1);
      },
      renumber: () => Promise.resolve(true),
      count: () => Promise.resolve(batch.counts),
    },
    queue: { states: (_shard, ids) => Promise.resolve(ids.map(() => 'done')) },
    answers: {
      read: (_shard, requestId) =>
        Promise.resolve({
          ...{ requestId, tenantId: 'ten_1', fields: { status: 'completed', tier: 'mobius' } },
          entries: [{ lastSeq: 2, payload: ENTRY }],
        }),
      shorten: () => Promise.resolve(),
    },
    lines: { again: () => Promise.resolve() },
    watch: { noteEnd: () => undefined, hasAnsweredSince: () => true },
    retentionMs: 1_000,
    clock: { now: () => 0 },
    random: () => 0,
  });
  for (let round = 0; round < 16; round += 1) await expect(collect(batch)).rejects.toThrow('MongoDB is away');
  expect(batch.tokens.next(1_000, Infinity)).toBe(1_000);

  await collect(batch);
  expect(batch.tokens.next(1_000, Infinity)).toBe(200);
});
