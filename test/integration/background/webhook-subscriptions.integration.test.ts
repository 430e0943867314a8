import { beforeAll, expect, it } from '@jest/globals';

import { createModels, ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import { createWebhookDeliveryRepository } from '../../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import { createWebhookRepository } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { createEventSink, createSubscriptions } from '../../../shared/webhooks/publish.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const mongo = useStarted('mongo', () => openTestMongo(uniqueName('whk-')));
beforeAll(async () => {
  await ensureIndexes(mongo);
});

it('an event costs a tenant without webhooks one look-up in half a minute, and nothing is written', async () => {
  let now = 1_800_000_000_000;
  let lookUps = 0;
  const space = { tenantId: newId('ten'), mode: 'live' } as const;
  const webhooks = createWebhookRepository(mongo);
  const subscriptions = createSubscriptions({
    clock: { now: () => now },
    webhooks: {
      subscriptions: (id) => {
        lookUps += 1;
        return webhooks.subscriptions(id);
      },
    },
  });
  const deliveries = createWebhookDeliveryRepository(mongo);
  const queue = { add: () => Promise.reject(new Error('Nothing is due')) };
  const events = createEventSink({ subscriptions, deliveries, log: createRecordingLog(), queue });

  for (let count = 0; count < 100; count += 1) expect(await subscriptions.of(space, 'chat.completed')).toEqual([]);
  expect(lookUps).toBe(1);
  now += 30_000;
  await subscriptions.of(space, 'chat.completed');
  expect(lookUps).toBe(2);
  await events.publish([{ ...space, type: 'key.revoked', cause: 'key_1', data: { key_id: 'key_1' }, now }]);
  expect(await createModels(mongo).webhookEvents.countDocuments({ tenantId: space.tenantId })).toBe(0);
});
