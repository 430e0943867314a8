import { expect, it } from '@jest/globals';
import { Worker } from 'bullmq';

import { redisUrl } from '../../support/stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useStarted } from '../../support/use-service.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';

const receiver = useStarted('receiver', startWebhookReceiver);
const service = useService({ workers: 0, env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });

it('a webhook whose job a killed worker held gets its events from another within twenty seconds', async () => {
  const tenant = await service.startTenant();
  const api = apiOf(service, tenant.key);
  const { body } = await api('post', '/webhooks', { url: receiver.url, events: ['key.created'] });
  await api('post', `/webhooks/${String(body.id)}/test`);
  const killed = new Worker('webhooks', null, {
    connection: { url: redisUrl(), maxRetriesPerRequest: null },
    ...{ prefix: service.keyspace.webhooks, lockDuration: 1_000, autorun: false },
  });
  expect(await killed.getNextJob('a token', { block: false })).toBeDefined();
  await killed.close(true);
  const startedAt = Date.now();

  await service.startWorker();

  await receiver.next('ping');
  expect(Date.now() - startedAt).toBeLessThan(20_000);
});
