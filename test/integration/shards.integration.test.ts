import { expect, it } from '@jest/globals';

import { waitFor } from '../support/chat.ts';
import { answersAll, tenantsByShard } from '../support/shards.ts';
import { useService } from '../support/use-service.ts';

const service = useService({ env: { QUEUE_SHARDS: '4' }, workers: 0 });

it('a worker that was started with fewer shards serves the shards of new tenants within seconds', async () => {
  await service.startWorker({ QUEUE_SHARDS: '1', WORKER_CONCURRENCY: '8' });

  const tenants = await tenantsByShard(service, 4);
  const answered = await waitFor(async () => (await answersAll(service, tenants)) || undefined, 'answers', 10_000);

  expect(answered).toBe(true);
  const rows = await service.models.tenants.find({}, { shard: 1 }).lean();
  expect(new Set(rows.map(({ shard }) => shard))).toEqual(new Set([0, 1, 2, 3]));
});

it('new tenants go to the shards that were added, and those from before stay', async () => {
  const all = await service.models.tenants.find({}, { _id: 1 }).lean();
  await service.models.tenants.updateMany({}, { $set: { shard: 0 } });

  const made = [];
  for (let count = 0; count < 6; count += 1) made.push(await service.startTenant());

  const rows = await service.models.tenants.find({ _id: { $in: made.map(({ tenantId }) => tenantId) } }).lean();
  expect(rows.map(({ shard }) => shard).sort()).toEqual([1, 1, 2, 2, 3, 3]);
  expect(await service.models.tenants.countDocuments({ shard: 0 })).toBe(all.length);
});
