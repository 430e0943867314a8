import { createAccountStates } from '../infra/mongo/accounts/account-repository.ts';
import type { MongoConnection } from '../infra/mongo/connection.ts';
import { createWebhookDeliveryRepository } from '../infra/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookDeliveryRepository } from '../infra/mongo/webhooks/webhook-delivery-repository.ts';
import { createWebhookRepository } from '../infra/mongo/webhooks/webhook-repository.ts';
import type { WebhookRepository } from '../infra/mongo/webhooks/webhook-repository.ts';
import { createWebhookQueue } from '../infra/queue/webhook-queue.ts';
import type { WebhookQueue } from '../infra/queue/webhook-queue.ts';
import type { RedisClient } from '../infra/redis/connection.ts';
import type { Keyspace } from '../infra/redis/keyspace.ts';
import { listenForAccessChanges } from '../infra/redis/tenants/access-flags.ts';
import type { Logger } from '../infra/logging/logger.ts';
import type { Clock } from '../lifecycle/clock.ts';
import type { Closer } from '../lifecycle/closer.ts';
import { createWatchAccount } from './account-watch.ts';
import type { WatchAccount } from './account-watch.ts';
import { createEventSink } from './event-sink.ts';
import type { EventSink } from './event-sink.ts';
import { createSubscriptions } from './subscriptions.ts';

export interface OpenPublishingDeps {
  mongo: MongoConnection;
  redis: RedisClient;
  subscriber: RedisClient;
  keyspace: Keyspace;
  clock: Clock;
  closer: Closer;
  log: Logger;
}

/** What every process needs to publish events to tenants' webhooks. */
export interface Publishing {
  webhooks: WebhookRepository;
  deliveries: WebhookDeliveryRepository;
  queue: WebhookQueue;
  events: EventSink;
  watchAccount: WatchAccount;
}

/** Opens the queue of deliveries and the subscriptions of tenants, which follow every change that is announced. */
export async function openPublishing(deps: OpenPublishingDeps): Promise<Publishing> {
  const { mongo, redis, subscriber, keyspace, clock, closer, log } = deps;
  const webhooks = createWebhookRepository(mongo);
  const deliveries = createWebhookDeliveryRepository(mongo);
  const queue = createWebhookQueue(redis, keyspace, (error) => {
    log.warn('The queue of webhooks reported an error.', { error });
  });
  closer.defer('webhook queue', () => queue.close());
  const subscriptions = createSubscriptions({ webhooks, clock });
  await listenForAccessChanges(subscriber, subscriptions.forget, subscriptions.forgetAll);
  const events = createEventSink({ subscriptions, deliveries, queue, log });
  const watchAccount = createWatchAccount({ events, accounts: createAccountStates(mongo) });
  return { webhooks, deliveries, queue, events, watchAccount };
}
