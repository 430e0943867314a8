import type { MongoConnection } from '../../../shared/infra/mongo/connection.ts';
import { createWebhookRepository } from '../../../shared/infra/mongo/webhooks/webhook-repository.ts';
import { createAccountStates } from '../../../shared/infra/mongo/accounts/account-repository.ts';
import type { CredentialCipher } from '../../../shared/infra/mongo/credentials.ts';
import { createWebhookDeliveryRepository } from '../../../shared/infra/mongo/webhooks/webhook-delivery-repository.ts';
import { listenForAccessChanges } from '../../../shared/infra/redis/tenants/access-flags.ts';
import type { Config } from '../../../shared/config/load-config.ts';
import { createWebhookQueue } from '../../../shared/infra/queue/webhook-queue.ts';
import type { RedisClient } from '../../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../../shared/infra/redis/keyspace.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { Closer } from '../../../shared/lifecycle/closer.ts';
import { createWatchAccount } from '../../../shared/webhooks/account-watch.ts';
import type { WatchAccount } from '../../../shared/webhooks/account-watch.ts';
import { createEventSink } from '../../../shared/webhooks/event-sink.ts';
import type { EventSink } from '../../../shared/webhooks/event-sink.ts';
import { createSubscriptions } from '../../../shared/webhooks/subscriptions.ts';
import type { WebhookParts } from './route.ts';
import { createTelling } from './telling.ts';
import type { Telling } from './telling.ts';

export interface OpenWebhooksDeps {
  mongo: MongoConnection;
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
  /** For the route. */
  parts: WebhookParts;
  /** An audit log that also tells receivers of what is noted in it. */
  telling: Telling;
  watchAccount: WatchAccount;
  events: Pick<EventSink, 'raise'>;
}

/** What the ingress needs of webhooks: their resources, and telling what its routes do. Workers deliver. */
export async function openWebhooks(deps: OpenWebhooksDeps): Promise<IngressWebhooks> {
  const { mongo, redis, keyspace, cipher, clock, closer, log } = deps;
  const repository = createWebhookRepository(mongo);
  const deliveries = createWebhookDeliveryRepository(mongo);
  const queue = createWebhookQueue(redis, keyspace, (error) => {
    log.warn('The queue of webhooks reported an error.', { error });
  });
  closer.defer('webhook queue', () => queue.close());
  const subscriptions = createSubscriptions({ webhooks: repository, clock });
  await listenForAccessChanges(deps.subscriber, subscriptions.forget, subscriptions.forgetAll);
  const events = createEventSink({ subscriptions, deliveries, queue, log });
  const watchAccount = createWatchAccount({ events, accounts: createAccountStates(mongo) });
  return {
    parts: { repository, deliveries, queue, events, cipher, allowPrivate: deps.config.allowPrivate },
    telling: createTelling({ events, watchAccount, clock, log }),
    ...{ watchAccount, events },
  };
}
