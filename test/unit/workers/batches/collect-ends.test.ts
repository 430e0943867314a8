import { expect, it } from '@jest/globals';

import { encodeEntry, FAULT } from '../../../../shared/contracts/events.ts';
import type { BatchRow } from '../../../../shared/infra/mongo/batches/batch-repository.ts';
import type { LineEnd } from '../../../../shared/infra/mongo/batches/batch-work-repository.ts';
import { createCollectEnds } from '../../../../workers/batches/collect-ends.ts';
import { openBatch } from '../../../../workers/batches/open-batch.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

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

it('fails a line whose answer cannot be read, and brings the others', async () => {
  const batch = openBatch(ROW, { completed: 0, failed: 0 });
  for (const index of [0, 1]) batch.inFlight.set(index, { index, requestId: `req_${index}` });
  const log = createRecordingLog();
  const ended: LineEnd[] = [];
  const collect = createCollectEnds({
    work: {
      end: (_tenant, _batch, ends) => Promise.resolve(ended.push(...ends)),
      renumber: () => Promise.resolve(true),
      count: () => Promise.resolve(batch.counts),
    },
    queue: { states: (_shard, ids) => Promise.resolve(ids.map(() => 'done')) },
    answers: {
      read: (_shard, requestId) =>
        Promise.resolve({
          ...{ requestId, tenantId: 'ten_1', fields: { status: 'completed', tier: 'mobius' } },
          entries: [{ lastSeq: 2, payload: requestId === 'req_0' ? '{"finishReason":' : ENTRY }],
        }),
      shorten: () => Promise.resolve(),
    },
    lines: { again: () => Promise.resolve() },
    watch: { noteEnd: () => undefined, hasAnsweredSince: () => true },
    ...{ retentionMs: 1_000, clock: { now: () => 0 }, random: () => 0, log },
  });

  await collect(batch);

  expect(ended.map(({ index, status }) => [index, status])).toEqual([
    [0, 'failed'],
    [1, 'completed'],
  ]);
  expect(ended[0]).toMatchObject({ answer: { entries: [{ payload: encodeEntry([], FAULT) }] } });
  expect(log.lines).toMatchObject([{ level: 'error', fields: { requestId: 'req_0' } }]);
});

it('learns from an end once, however often its result could not be stored', async () => {
  const batch = openBatch(ROW, { completed: 0, failed: 0 });
  batch.inFlight.set(0, { index: 0, requestId: 'req_1', promptTokens: 0 });
  let failuresLeft = 16;
  let noted = 0;
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
    watch: { noteEnd: () => (noted += 1), hasAnsweredSince: () => true },
    retentionMs: 1_000,
    clock: { now: () => 0 },
    random: () => 0,
    log: createRecordingLog(),
  });
  for (let round = 0; round < 16; round += 1) await expect(collect(batch)).rejects.toThrow('MongoDB is away');
  expect(batch.tokens.next(1_000, Infinity)).toBe(1_000);

  await collect(batch);
  expect(batch.tokens.next(1_000, Infinity)).toBe(200);
  expect(noted).toBe(1);
});
