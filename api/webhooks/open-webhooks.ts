import type { WebhookRepository } from '../../shared/infra/mongo/webhook-repository.ts';
import { createWebhookRepository } from '../../shared/infra/mongo/webhook-repository.ts';
import { createAccountStates } from '../../shared/infra/mongo/account-states.ts';
import type { CredentialCipher } from '../../shared/infra/mongo/credentials.ts';
import type { Models } from '../../shared/infra/mongo/models.ts';
import { createWebhookDeliveryRepository } from '../../shared/infra/mongo/webhook-delivery-repository.ts';
import { createWebhookQueue } from '../../shared/infra/queue/webhook-queue.ts';
import type { RedisClient } from '../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../shared/infra/redis/keyspace.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import { createWatchAccount } from '../../shared/webhooks/account-watch.ts';
import { createEventSink } from '../../shared/webhooks/event-sink.ts';
import type { EventSink } from '../../shared/webhooks/event-sink.ts';
import { createSubscriptions } from '../../shared/webhooks/subscriptions.ts';
import type { Subscriptions } from '../../shared/webhooks/subscriptions.ts';
import type { WebhookParts } from '../routes/webhooks/route.ts';
import { createTellActs } from './tell-acts.ts';
import type { TellAct } from './tell-acts.ts';

export interface OpenWebhooksDeps {
  mongo: Parameters<typeof createWebhookRepository>[0];
  models: Models;
  redis: RedisClient;
  keyspace: Keyspace;
  cipher: CredentialCipher;
  allowPrivate: boolean;
  clock: Clock;
  closer: Closer;
  log: Logger;
}

export interface IngressWebhooks {
  /** For the route. */
  parts: WebhookParts & { repository: WebhookRepository };
  /** For those who tell of what happens in this process. */
  events: EventSink;
  tellAct: TellAct;
  /** Must hear of changes. */
  subscriptions: Subscriptions;
}

/** What the ingress needs of webhooks: their resources, and telling what its routes do. Workers deliver. */
export function openWebhooks(deps: OpenWebhooksDeps): IngressWebhooks {
  const { mongo, models, redis, keyspace, cipher, allowPrivate, clock, closer, log } = deps;
  const repository = createWebhookRepository(mongo, models);
  const deliveries = createWebhookDeliveryRepository(models);
  const queue = createWebhookQueue(redis, keyspace, (error) => {
    log.warn('The queue of webhooks reported an error.', { error });
  });
  closer.defer('webhook queue', () => queue.close());
  const subscriptions = createSubscriptions({ webhooks: repository, clock });
  const events = createEventSink({ subscriptions, deliveries, queue, log });
  const watchAccount = createWatchAccount({ events, accounts: createAccountStates(models) });
  return {
    parts: { repository, deliveries, queue, events, cipher, allowPrivate },
    events,
    tellAct: createTellActs({ events, watchAccount, clock, log }),
    subscriptions,
  };
}
