import { createWebhookRepository } from '../../../shared/infra/mongo/webhooks/webhook-repository.ts';
import { createAccountStates } from '../../../shared/infra/mongo/accounts/account-states.ts';
import type { CredentialCipher } from '../../../shared/infra/mongo/credentials.ts';
import type { Models } from '../../../shared/infra/mongo/models.ts';
import { createWebhookDeliveryRepository } from '../../../shared/infra/mongo/webhooks/webhook-delivery-repository.ts';
import { listenForAccessChanges } from '../../../shared/infra/redis/tenants/access-channel.ts';
import type { Config } from '../../../shared/config/load-config.ts';
import { createWebhookQueue } from '../../../shared/infra/queue/webhook-queue.ts';
import type { RedisClient } from '../../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../../shared/infra/redis/keyspace.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { Closer } from '../../../shared/lifecycle/closer.ts';
import { createWatchAccount } from '../../../shared/webhooks/account-watch.ts';
import { createEventSink } from '../../../shared/webhooks/event-sink.ts';
import { createSubscriptions } from '../../../shared/webhooks/subscriptions.ts';
import type { TenantEventListener } from '../../tenant-events.ts';
import type { WebhookParts } from './webhooks-deps.ts';
import { createPublishTenantEvents } from './publish-tenant-events.ts';

export interface OpenWebhooksDeps {
  mongo: Parameters<typeof createWebhookRepository>[0];
  models: Models;
  redis: RedisClient;
  subscriber: RedisClient;
  keyspace: Keyspace;
  cipher: CredentialCipher;
  config: Config['webhooks'];
  clock: Clock;
  closer: Closer;
  log: Logger;
}

export interface IngressWebhooks {
  /** For the endpoints. */
  parts: WebhookParts;
  /** Publishes what is done in a tenant's account. */
  publish: TenantEventListener;
}

/** What the ingress needs of webhooks: their resources, and publishing its own events. Workers deliver. */
export async function openWebhooks(deps: OpenWebhooksDeps): Promise<IngressWebhooks> {
  const { mongo, models, redis, keyspace, cipher, clock, closer, log } = deps;
  const repository = createWebhookRepository(mongo, models);
  const deliveries = createWebhookDeliveryRepository(models);
  const queue = createWebhookQueue(redis, keyspace, (error) => {
    log.warn('The queue of webhooks reported an error.', { error });
  });
  closer.defer('webhook queue', () => queue.close());
  const subscriptions = createSubscriptions({ webhooks: repository, clock });
  await listenForAccessChanges(deps.subscriber, subscriptions.forget, subscriptions.forgetAll);
  const events = createEventSink({ subscriptions, deliveries, queue, log });
  const watchAccount = createWatchAccount({ events, accounts: createAccountStates(models) });
  return {
    parts: { repository, deliveries, queue, events, cipher, allowPrivate: deps.config.allowPrivate },
    publish: createPublishTenantEvents({ events, watchAccount, clock, log }),
  };
}
