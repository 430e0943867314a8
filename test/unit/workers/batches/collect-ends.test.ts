import { expect, it } from '@jest/globals';

import { encodeEntry, FAULT } from '../../../../shared/contracts/events.ts';
import type { BatchRow } from '../../../../shared/mongo/batches/batch-repository.ts';
import type { LineEnd } from '../../../../shared/mongo/batches/batch-work-repository.ts';
import { createCollectEnds } from '../../../../workers/batches/collect-ends.ts';
import { advance, openBatch } from '../../../../workers/batches/open-batch.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

const ROW: BatchRow = {
  _id: 'bat_1',
  tenantId: 'ten_1',
  keyId: 'key_1',
  shard: 0,
  mode: 'live',
  status: 'in_progress',
  waitingFor: null,
  total: 2,
  completed: 0,
  failed: 0,
  createdAt: 0,
  expiresAt: 1,
  removeAt: new Date(0),
};
const ENTRY = encodeEntry(['Yes'], { finishReason: 'stop', usage: { promptTokens: 10, completionTokens: 90 } });

/** A batch whose lines have ended: the payload of each answer, by the request's id. `end` takes the results. */
function endedBatch(payloads: Record<string, string>, end: (ends: readonly LineEnd[]) => Promise<number>) {
  const batch = openBatch(ROW, { completed: 0, failed: 0 });
  const lines = Object.keys(payloads).map((requestId, index) => ({ index, requestId, promptTokens: 0 }));
  advance(batch, { kind: 'sent', lines });
  const log = createRecordingLog();
  let noted = 0;
  let outages = 0;
  const collect = createCollectEnds({
    work: {
      end: (_tenant, _batch, ends) => end(ends),
      renumber: () => Promise.resolve(true),
      count: () => Promise.resolve(batch.counts),
    },
    queue: { states: (_shard, ids) => Promise.resolve(ids.map(() => 'done')) },
    answers: {
      read: (_shard, requestId) =>
        Promise.resolve({
          requestId,
          tenantId: 'ten_1',
          fields: { status: 'completed', tier: 'mobius' },
          entries: [{ lastSeq: 2, payload: payloads[requestId] ?? '' }],
        }),
      shorten: () => Promise.resolve(),
    },
    lines: { again: () => Promise.resolve() },
    failedTries: { note: () => undefined },
    watch: {
      recordEnd(_tier, _trace, hasFailed) {
        noted += 1;
        if (hasFailed) outages += 1;
      },
      hasAnsweredSince: () => false,
    },
    retentionMs: 1_000,
    clock: { now: () => 0 },
    random: () => 0,
    log,
  });
  return { batch, log, collect: () => collect(batch), noted: () => noted, outages: () => outages };
}

it('fails a line whose answer cannot be read, and brings the others', async () => {
  const ended: LineEnd[] = [];
  const { collect, log } = endedBatch({ req_0: '{"finishReason":', req_1: ENTRY }, (ends) =>
    Promise.resolve(ended.push(...ends)),
  );

  await collect();

  expect(ended.map(({ index, status }) => [index, status])).toEqual([
    [0, 'failed'],
    [1, 'completed'],
  ]);
  expect(ended[0]).toMatchObject({ answer: { entries: [{ payload: encodeEntry([], FAULT) }] } });
  expect(log.lines).toMatchObject([{ level: 'error', fields: { requestId: 'req_0' } }]);
});

it('has large answers in memory by their bytes, not by their number', async () => {
  const large = encodeEntry(['x'.repeat(3 * 1024 * 1024)], FAULT);
  const sizes: number[] = [];
  const { collect } = endedBatch(
    Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`req_${index}`, large])),
    (ends) => Promise.resolve(sizes.push(ends.length)),
  );

  await collect();

  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(40);
  expect(Math.max(...sizes)).toBeLessThan(12);
});

it('learns from an end once, however often its result could not be stored', async () => {
  let failuresLeft = 16;
  const { batch, collect, noted } = endedBatch({ req_1: ENTRY }, () => {
    failuresLeft -= 1;
    return failuresLeft >= 0 ? Promise.reject(new Error('MongoDB is away')) : Promise.resolve(1);
  });
  for (let round = 0; round < 16; round += 1) await expect(collect()).rejects.toThrow('MongoDB is away');
  expect(batch.tokens.next(1_000, Infinity)).toBe(1_000);

  await collect();
  expect(batch.tokens.next(1_000, Infinity)).toBe(200);
  expect(noted()).toBe(1);
});

it('takes a model that gives no JSON for no outage: the line is tried five times', async () => {
  const error = { code: 'model_unavailable', message: 'The model gave no valid JSON object; try again.' } as const;
  const attempts = [{ provider: 'one', model: 'm', startedAt: 1, endedAt: 2, outcome: 'failed' }];
  const notJson = encodeEntry([], { ...FAULT, error, trace: { attempts, reason: 'not_json' } });
  const ended: LineEnd[] = [];
  const { batch, collect, outages } = endedBatch({ req_0: notJson }, (ends) => Promise.resolve(ended.push(...ends)));
  for (let tries = 1; tries < 5; tries += 1) {
    await collect();
    const retry = batch.lines.waiting.at(-1)?.retry;
    advance(batch, {
      kind: 'sent',
      lines: [{ index: 0, requestId: 'req_0', promptTokens: 0, ...(retry && { retry }) }],
    });
  }
  expect(ended).toEqual([]);

  await collect();

  expect(ended).toMatchObject([{ index: 0, status: 'completed', outage: undefined }]);
  expect(outages()).toBe(0);
});
