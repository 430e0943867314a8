import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Connection } from 'mongoose';

import { openUpload } from '../../../api/resources/batches/upload.ts';
import type { Upload, UploadDeps } from '../../../api/resources/batches/upload.ts';
import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { createBatchRepository } from '../../../shared/mongo/batches/batch-repository.ts';
import type { BatchRepository } from '../../../shared/mongo/batches/batch-repository.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { createBatchQueue } from '../../../shared/requests/queue-store.ts';
import type { BatchQueue } from '../../../shared/requests/queue-store.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { principalOf } from '../../support/request-lab.ts';
import { openTestMongo, openTestRedis, uniqueName } from '../../support/stores.ts';

const SHARD = 3;
const MIB = 1024 * 1024;
let mongo: Connection;
let redis: RedisClient;
let batches: BatchRepository;
let batchQueue: BatchQueue;
beforeAll(async () => {
  redis = await openTestRedis('producer');
  batchQueue = createBatchQueue(redis, createKeyspace(uniqueName('upb-')));
  mongo = await openTestMongo(uniqueName('upb-'));
  batches = createBatchRepository(mongo);
});
afterAll(async () => {
  await mongo.close();
  await redis.quit();
});

function open(tenantId: string, over: Partial<UploadDeps['batches']> = {}): Upload {
  const principal = principalOf({ shard: SHARD, tenantId });
  const clock = { now: () => Date.now() };
  return openUpload(principal, { batches: { ...batches, ...over }, batchQueue, clock, log: createRecordingLog() });
}

async function addMany(upload: Upload, count: number, bytes: number): Promise<void> {
  for (let index = 0; index < count; index += 1)
    await upload.add({ customId: `l${index}`, requestJson: 'x'.repeat(bytes) });
}

it('an upload of some 4 MiB writes nothing before it starts, and counts what it holds', async () => {
  const refuse = () => Promise.reject(new Error('It was written'));
  const upload = open(newId('ten'), { insert: refuse, addLines: refuse });

  await addMany(upload, BATCH_LIMITS.linesMax, 100);

  expect(upload.heldBytes()).toBeGreaterThan(BATCH_LIMITS.linesMax * 500);
  expect(upload.heldBytes()).toBeLessThanOrEqual(8 * MIB);
});

it('an upload counts as the largest among what its tenant has stored, until it has started', async () => {
  const tenantId = newId('ten');
  const upload = open(tenantId);
  await addMany(upload, 3, 2_000_000);
  const { bytesMax: bytes, linesMax: lines } = BATCH_LIMITS;
  expect(await batches.stored(tenantId)).toMatchObject({ lines, bytes });

  await upload.start(undefined);

  expect(await batches.stored(tenantId)).toMatchObject({ lines: 3, bytes: 6_000_000 });
});

it('what uploads write is taken from the minute of their tenant, and not given back with what is taken back', async () => {
  const [tenantId, other] = [newId('ten'), newId('ten')];
  const waitOf = (id: string) => batchQueue.takeWriting(SHARD, id, 0);
  const write = async (bytes: number) => {
    const upload = open(tenantId, { addLines: () => Promise.resolve() });
    await addMany(upload, bytes / MIB, MIB);
    // It makes the ones before it written.
    await upload.add({ customId: 'last', requestJson: 'x'.repeat(8 * MIB) });
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
