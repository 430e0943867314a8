import { expect, it } from '@jest/globals';

import { composeIngress } from '../../../api/compose.ts';
import { loadConfig } from '../../../shared/config/load-config.ts';
import { createCloser } from '../../../shared/lifecycle/closer.ts';
import { chatOf, postChat, waitFor } from '../../support/chat.ts';
import { answersAll, tenantsByShard } from '../../support/shards.ts';
import { listen } from '../../support/listen.ts';
import { mongoUri, redisUrl } from '../../support/stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';

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

it('an ingress with the old number of shards and one with the new one serve the same tenants', async () => {
  const namespace = /^\{(.*)-0\}$/.exec(service.keyspace.shard(0).tag)?.[1] ?? '';
  const closer = createCloser((step, error) => {
    service.log.error(`Closing ${step} failed.`, { error });
  });
  const config = loadConfig(
    {
      REDIS_URL: redisUrl(),
      MONGODB_URI: mongoUri(namespace),
      ADMIN_TOKEN: 'an-administrator-token-of-tests-0123456789',
      CREDENTIALS_KEY: Buffer.alloc(32, 7).toString('base64'),
      QUEUE_SHARDS: '1',
    },
    'api',
  );
  const { app } = await composeIngress(config, service.log, closer, { namespace });
  const { server: old, close } = await listen(app);
  closer.defer('server', close);
  const tenants = await tenantsByShard(service, 4);

  const answers = await Promise.all(tenants.map(({ key }) => postChat(old, key, chatOf('Hi'))));
  const found = await Promise.all(
    tenants.map(({ key }, index) => apiOf(service, key)('get', `/chat/${String(answers[index]?.body.id)}`)),
  );

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(found.map(({ body }) => String(body.status))).toEqual(Array(4).fill('completed'));
  await closer.close();
});
