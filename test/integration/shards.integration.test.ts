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
