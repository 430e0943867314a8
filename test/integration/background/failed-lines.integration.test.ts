import { beforeAll, expect, it } from '@jest/globals';

import { batchLineId } from '../../../shared/mongo/batches/batch-lines.ts';
import { createBatchWorkRepository } from '../../../shared/mongo/batches/batch-work-repository.ts';
import type { BatchWorkRepository } from '../../../shared/mongo/batches/batch-work-repository.ts';
import { createFailedLines } from '../../../shared/mongo/batches/failed-lines.ts';
import type { FailedLines } from '../../../shared/mongo/batches/failed-lines.ts';
import { createModels } from '../../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../../shared/mongo/administration/catalogue.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { createCloseBatch } from '../../../workers/batches/close-batch.ts';
import { advance, openBatch } from '../../../workers/batches/open-batch.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const HOUR_MS = 3_600_000;
const OUTAGE = { failedAt: 1_000, failedCode: 'model_unavailable' } as const;

let models: Models;
let work: BatchWorkRepository;
let failed: FailedLines;
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('lines-')));
beforeAll(() => {
  models = createModels(mongo);
  work = createBatchWorkRepository(mongo);
  failed = createFailedLines(mongo);
});

/** A batch of one line, which was given up; nothing else is left of it. */
async function batchAtRest() {
  const removeAt = new Date(Date.now() + HOUR_MS);
  const [batchId, requestId, tenantId] = [newId('batch'), newId('req'), newId('ten')];
  const row = await models.batches.create({
    ...{ _id: batchId, tenantId, shard: 0, keyId: 'key_1', mode: 'live', status: 'in_progress', waitingFor: null },
    ...{ total: 1, completed: 0, failed: 1, createdAt: 0, expiresAt: Date.now() + HOUR_MS, removeAt, openShard: 0 },
  });
  await models.batchLines.create({
    ...{ _id: batchLineId(batchId, 0), tenantId, mode: 'live', batchId, index: 0, customId: 'one', requestId },
    ...{ state: 'failed', requestJson: '{}', ...OUTAGE, removeAt },
  });
  const batch = openBatch(row.toObject(), { completed: 0, failed: 1 });
  advance(batch, { kind: 'page', cursor: -1, isRead: true });
  const line = async () => models.batchLines.findOne({ batchId }).lean();
  const reopen = async () => {
    const [one] = await failed.list({ requestIds: [requestId] }, { after: undefined, limit: 1 });
    return one !== undefined && failed.reopen(one);
  };
  return { batchId, requestId, batch, line, reopen };
}

/** `besides` runs when the lines have been counted, and before the batch ends. */
function closing(besides: () => Promise<unknown>) {
  return createCloseBatch({
    work: {
      ...work,
      async count(...names) {
        const counts = await work.count(...names);
        await besides();
        return counts;
      },
    },
    admissions: { void: taken, voidPermanently: taken, voidRefused: taken },
    queue: { close: () => Promise.resolve() },
    lines: { more: () => Promise.resolve() },
    events: { publish: () => Promise.resolve() },
    replayLog: { note: () => undefined },
    hasReconnectedRecently: () => false,
    clock: { now: () => Date.now() },
    log: createRecordingLog(),
  });
}
const taken = () => Promise.resolve('missing');
const keepLead = () => Promise.resolve();

it('a batch does not end while one of its lines comes to wait again', async () => {
  const { batchId, batch, line, reopen } = await batchAtRest();
  const { closeIfDue } = closing(async () => {
    expect(await reopen()).toBe(true);
  });

  expect(await closeIfDue(batch, keepLead)).toBe(false);

  expect((await models.batches.findById(batchId).lean())?.status).toBe('in_progress');
  expect((await line())?.state).toBe('waiting');
  // All lines are read again, so that this one is sent.
  expect(batch.lines.isRead).toBe(false);
});

it('a line that comes too late ends with its batch, and nothing of its request is left', async () => {
  const { batchId, requestId, batch, line } = await batchAtRest();
  const [one] = await failed.list({ requestIds: [requestId] }, { after: undefined, limit: 1 });
  const { closeIfDue } = closing(() => Promise.resolve());
  expect(await closeIfDue(batch, keepLead)).toBe(true);

  expect(one !== undefined && (await failed.reopen(one))).toBe(false);

  expect((await models.batches.findById(batchId).lean())?.status).toBe('completed');
  const left = await line();
  expect(left).toMatchObject({ state: 'failed', requestId });
  expect(left?.requestJson).toBeUndefined();
});
