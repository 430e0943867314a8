import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import type { BatchLine } from '../../../api/resources/batches/to-line.ts';
import { openUpload } from '../../../api/resources/batches/upload.ts';
import type { Upload, UploadDeps } from '../../../api/resources/batches/upload.ts';
import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { createBatchRepository } from '../../../shared/mongo/batches/batch-repository.ts';
import type { BatchRepository } from '../../../shared/mongo/batches/batch-repository.ts';
import { createBatchWorkRepository } from '../../../shared/mongo/batches/batch-work-repository.ts';
import { createModels, ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../../shared/mongo/administration/catalogue.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { createBatchQueue } from '../../../shared/requests/queue-store.ts';
import type { BatchQueue } from '../../../shared/requests/queue-store.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { principalOf } from '../../support/request-lab.ts';
import { openTestMongo, openTestRedis, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';

const SHARD = 3;
const MIB = 1024 * 1024;
const PRINCIPAL = principalOf({ shard: SHARD, tenantId: 'ten_1', keyId: 'key_1' });
/** Of today: MongoDB removes what is past its time. */
const NOW = Date.now();

let models: Models;
let batches: BatchRepository;
let batchQueue: BatchQueue;
const redis = useStarted('redis', () => openTestRedis('producer'));
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('upl-')));
beforeAll(async () => {
  batchQueue = createBatchQueue(redis, createKeyspace(uniqueName('upl-')));
  models = createModels(mongo);
  await ensureIndexes(mongo);
  batches = createBatchRepository(mongo);
});
beforeEach(async () => {
  await models.batches.deleteMany({});
  await models.batchLines.deleteMany({});
});

function open(
  over: Partial<UploadDeps['batches']> = {},
  queue: UploadDeps['batchQueue'] = batchQueue,
  principal = PRINCIPAL,
) {
  const log = createRecordingLog();
  const stores = { batches: { ...batches, ...over }, batchQueue: queue };
  const upload = openUpload(principal, { ...stores, clock: { now: () => NOW }, log });
  return { upload, log };
}

const line = (index: number, bytes = 10): BatchLine => ({ customId: `l${index}`, requestJson: 'x'.repeat(bytes) });

/** 600 of these are more than an upload holds in memory, so that some are stored. */
async function addMany(upload: Upload, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await upload.add(line(index, 8_000));
}

const stored = () => Promise.all([models.batches.countDocuments(), models.batchLines.countDocuments()]);
const away = () => Promise.reject(new Error('away'));

describe('an upload', () => {
  it('stores groups of few lines and few bytes, one after the other', async () => {
    const groups: { lines: number; bytes: number }[] = [];
    let atOnce = 0;
    const { upload } = open({
      async addLines(lines) {
        atOnce += 1;
        expect(atOnce).toBe(1);
        const bytes = lines.reduce((sum, { requestJson = '' }) => sum + requestJson.length, 0);
        groups.push({ lines: lines.length, bytes });
        await batches.addLines(lines);
        atOnce -= 1;
      },
    });

    for (let index = 0; index < 1_000; index += 1) await upload.add(line(index, index < 990 ? 10 : 1_500_000));
    const row = await upload.start(undefined);

    expect(row.total).toBe(1_000);
    expect(groups.reduce((sum, { lines }) => sum + lines, 0)).toBe(1_000);
    for (const group of groups) {
      expect(group.lines).toBeLessThanOrEqual(500);
      expect(group.bytes).toBeLessThanOrEqual(4 * 1024 * 1024);
    }
  });

  it('of a few lines writes nothing before it starts', async () => {
    const { upload } = open();
    await addMany(upload, 50);
    expect(await stored()).toEqual([0, 0]);

    const row = await upload.start('{"a":1}');

    expect(row).toMatchObject({
      ...{ status: 'in_progress', shard: 3, openShard: 3, keyId: 'key_1', metadataJson: '{"a":1}', total: 50 },
      ...{ createdAt: NOW, expiresAt: NOW + 86_400_000 },
    });
    expect(await stored()).toEqual([1, 50]);
  });

  it('is stored once where a group is written again', async () => {
    const { upload } = open({
      async insert(batch) {
        await batches.insert(batch);
        return batches.insert(batch);
      },
      async addLines(lines) {
        await batches.addLines(lines.slice(0, 3));
        await batches.addLines(lines);
      },
    });
    await addMany(upload, 600);

    expect((await upload.start(undefined)).total).toBe(600);
    expect(await stored()).toEqual([1, 600]);
  });

  it('can be taken back until it starts, and not after', async () => {
    const [first, second] = [open().upload, open().upload];
    await addMany(first, 600);
    await addMany(second, 600);
    await second.start(undefined);

    await Promise.all([first.discard(), second.discard()]);
    await first.discard();

    expect(await stored()).toEqual([1, 600]);
    await expect(first.start(undefined)).rejects.toMatchObject({ code: 'conflict' });
    expect(await stored()).toEqual([1, 600]);
  });

  it('that was given up meanwhile is a conflict, and leaves nothing', async () => {
    const { upload } = open();
    await addMany(upload, 600);
    const row = await models.batches.findOne({}).lean();
    await createBatchWorkRepository(mongo).removeUnstarted('ten_1', String(row?._id), 'validating', NOW);

    await expect(upload.start(undefined)).rejects.toMatchObject({ code: 'conflict' });

    expect(await stored()).toEqual([0, 0]);
  });

  it('has started where the answer that said so was lost, and it was asked again', async () => {
    const { upload } = open({
      async start(...from) {
        await batches.start(...from);
        return batches.start(...from);
      },
    });
    await addMany(upload, 600);

    expect(await upload.start(undefined)).toMatchObject({ status: 'in_progress', total: 600 });
    expect(await stored()).toEqual([1, 600]);
  });

  it.each(['has', 'has not'])('that %s started, as nobody was told, is taken away', async (has) => {
    const { upload } = open({
      async start(...from) {
        if (has === 'has') await batches.start(...from);
        return away();
      },
    });
    await addMany(upload, 600);

    await expect(upload.start(undefined)).rejects.toThrow('away');

    await waitUntil(async () => (await stored()).every((count) => count === 0), 'it to be taken away');
  });

  it('is a batch where a worker took it up before anybody knew whether it has started', async () => {
    const { upload } = open({
      async start(tenantId, batchId, arrived) {
        await batches.start(tenantId, batchId, arrived);
        await batchQueue.decide(3, batchId, 'running');
        return away();
      },
    });
    await addMany(upload, 600);

    expect(await upload.start('{"a":1}')).toMatchObject({ status: 'in_progress', total: 600, metadataJson: '{"a":1}' });
    await upload.discard();
    expect(await stored()).toEqual([1, 600]);
  });

  it('asks on the shard to which its tenant was moved meanwhile whether a worker took it up', async () => {
    await models.tenants.collection.insertOne({ _id: 'ten_1' as never, shard: 5 });
    const { upload } = open({
      async start(tenantId, batchId, arrived) {
        await batches.start(tenantId, batchId, arrived);
        await batchQueue.decide(5, batchId, 'running');
        return away();
      },
    });
    await addMany(upload, 600);

    expect(await upload.start(undefined)).toMatchObject({ status: 'in_progress', shard: 5 });
    await upload.discard();
    expect(await stored()).toEqual([1, 600]);
    await models.tenants.deleteMany({});
  });

  it('stays as it is where nobody knows whether it has started, and a repeat would find it', async () => {
    const { upload } = open({
      async start(...from) {
        await batches.start(...from);
        return away();
      },
    });
    await addMany(upload, 600);

    await expect(upload.start(undefined, 'a run')).rejects.toThrow('away');
    await upload.discard();

    const row = await models.batches.findOne({}).lean();
    expect(row?.status).toBe('in_progress');
    expect(await batchQueue.decide(3, String(row?._id), 'running')).toBe('running');
    expect(await stored()).toEqual([1, 600]);
  });

  it('that runs after all, as both stores were away, is said to the operator', async () => {
    let isAway = true;
    const { upload, log } = open(
      {
        async start(tenantId, batchId, arrived) {
          await batches.start(tenantId, batchId, arrived);
          return away();
        },
      },
      {
        ...batchQueue,
        async decide(shard, batchId, state) {
          if (isAway) return away();
          await batchQueue.decide(shard, batchId, 'running');
          return batchQueue.decide(shard, batchId, state);
        },
      },
    );
    await addMany(upload, 600);
    await expect(upload.start(undefined)).rejects.toThrow('away');

    isAway = false;

    await waitFor(() => Promise.resolve(log.errors().length > 0 ? true : undefined), 'the operator to be told');
    expect(await stored()).toEqual([1, 600]);
  });

  it('that broke off is not listed as a batch', async () => {
    const list = () => createBatchRepository(mongo).list(PRINCIPAL, { limit: 20, order: 'desc' });
    const { upload } = open();
    await addMany(upload, 600);
    expect(await list()).toHaveLength(1);
    const row = await models.batches.findOne({}).lean();
    await createBatchWorkRepository(mongo).removeUnstarted('ten_1', String(row?._id), 'validating', NOW);

    expect(await list()).toEqual([]);
    expect(await createBatchRepository(mongo).countOpen(PRINCIPAL, 3)).toBe(0);
    expect(await stored()).toEqual([0, 0]);
  });

  it('that is not yet taken away is not listed as a batch, either', async () => {
    const { upload } = open();
    await addMany(upload, 600);
    await models.batches.updateOne({}, { $set: { status: 'failed' } });

    const query = { limit: 20, order: 'desc' } as const;
    expect(await createBatchRepository(mongo).list(PRINCIPAL, query)).toEqual([]);
  });

  it('that cannot be taken back is said to the operator', async () => {
    const { upload, log } = open({ remove: away });
    await addMany(upload, 600);

    await upload.discard();

    expect(log.lines).toEqual([
      expect.objectContaining({ level: 'warn', fields: expect.objectContaining({ tenantId: 'ten_1' }) }),
    ]);
  });
});

async function addLarge(upload: Upload, count: number, bytes: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await upload.add(line(index, bytes));
}

it('an upload of some 4 MiB writes nothing before it starts, and counts what it holds', async () => {
  const refuse = () => Promise.reject(new Error('It was written'));
  const { upload } = open({ insert: refuse, addLines: refuse });

  await addLarge(upload, BATCH_LIMITS.linesMax, 100);

  expect(upload.heldBytes()).toBeGreaterThan(BATCH_LIMITS.linesMax * 500);
  expect(upload.heldBytes()).toBeLessThanOrEqual(8 * MIB);
});

it('an upload counts as the largest among what its tenant has stored, until it has started', async () => {
  const { upload } = open();
  await addLarge(upload, 3, 2_000_000);
  const { bytesMax: bytes, linesMax: lines } = BATCH_LIMITS;
  expect(await batches.stored('ten_1')).toMatchObject({ lines, bytes });

  await upload.start(undefined);

  expect(await batches.stored('ten_1')).toMatchObject({ lines: 3, bytes: 6_000_000 });
});

it('what uploads write is taken from the minute of their tenant, and not given back with what is taken back', async () => {
  const [tenantId, other] = [newId('ten'), newId('ten')];
  const waitOf = (id: string) => batchQueue.takeWriting(SHARD, id, 0);
  const write = async (bytes: number) => {
    const principal = principalOf({ shard: SHARD, tenantId });
    const { upload } = open({ addLines: () => Promise.resolve() }, batchQueue, principal);
    await addLarge(upload, bytes / MIB, MIB);
    // It makes the ones before it written.
    await upload.add(line(bytes, 8 * MIB));
    await upload.discard();
  };

  await write(BATCH_LIMITS.writtenBytesPerMinute / 2);
  expect(await waitOf(tenantId)).toBe(0);
  await write(BATCH_LIMITS.writtenBytesPerMinute);

  // A minute and a half was taken, less what has passed since.
  expect(await waitOf(tenantId)).toBeGreaterThan(10_000);
  expect(await waitOf(tenantId)).toBeLessThanOrEqual(31_000);
  expect(await waitOf(other)).toBe(0);
});
