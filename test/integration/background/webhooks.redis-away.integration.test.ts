import { afterEach, expect, it } from '@jest/globals';

import type { RunningWorker } from '../../support/service.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { redisUrl } from '../../support/stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useStarted } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';

const redis = useStarted('proxy', () => openTcpProxy(redisUrl()));
const gone = useStarted('receiver', startWebhookReceiver);
const other = useStarted('receiver', startWebhookReceiver);
let cutOff: RunningWorker | undefined;
const service = useService({ workers: 0, env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });
afterEach(async () => {
  // A worker that looks for it leaves timers behind as it stops.
  redis.set('pass');
  const isBack = async () =>
    /_check_passes\{.*check="redis".*\} 1$/m.test((await cutOff?.metrics()) ?? '') || undefined;
  if (cutOff !== undefined) await waitFor(isBack, 'the worker to find Redis again');
});

it('a webhook is disabled, and the others are told, although the worker that does so has lost Redis for good', async () => {
  cutOff = await service.startWorker({ REDIS_URL: redis.url });
  const tenant = await service.startTenant();
  const api = apiOf(service, tenant.key);
  gone.answerWith((res) => {
    redis.set('reset');
    res.writeHead(410).end();
  });
  const { body } = await api('post', '/webhooks', { url: gone.url, events: ['webhook.disabled'] });
  await api('post', '/webhooks', { url: other.url, events: ['webhook.disabled'] });
  await api('post', `/webhooks/${String(body.id)}/test`);
  await gone.next('ping');

  await service.startWorker();

  const told = await other.next('webhook.disabled');
  expect(told.body.data).toEqual({ webhook_id: body.id, url: gone.url, reason: 'gone' });
  const deliveries = await service.models.webhookDeliveries.find({ webhookId: String(body.id) }).lean();
  expect(deliveries.map(({ type, status }) => [type, status])).toEqual([['ping', 'failed']]);
});
