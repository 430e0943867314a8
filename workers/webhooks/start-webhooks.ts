import type { Config } from '../../shared/config/load-config.ts';
import { createWebhookClient } from '../../shared/infra/http/webhook-client.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { MongoConnection } from '../../shared/infra/mongo/connection.ts';
import { createAccountStates } from '../../shared/infra/mongo/accounts/account-repository.ts';
import type { CredentialCipher } from '../../shared/infra/mongo/credentials.ts';
import { createExpiringKeys } from '../../shared/infra/mongo/tenants/key-repository.ts';
import { createWebhookDeliveryRepository } from '../../shared/infra/mongo/webhooks/webhook-delivery-repository.ts';
import { createWebhookRepository } from '../../shared/infra/mongo/webhooks/webhook-repository.ts';
import { createWebhookQueue } from '../../shared/infra/queue/webhook-queue.ts';
import { createAccessFlags, listenForAccessChanges } from '../../shared/infra/redis/tenants/access-flags.ts';
import type { RedisClient } from '../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../shared/infra/redis/keyspace.ts';
import { FLEET_SHARD } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import { repeat } from '../../shared/lifecycle/repeat.ts';
import { createWatchAccount } from '../../shared/webhooks/account-watch.ts';
import type { ErasureGate } from '../compliance/erasure-gate.ts';
import { createEventSink } from '../../shared/webhooks/event-sink.ts';
import type { EventSink } from '../../shared/webhooks/event-sink.ts';
import { createSubscriptions } from '../../shared/webhooks/subscriptions.ts';
import { createWebhookWorkers } from '../processors/webhook-delivery.ts';
import { createAnnounceExpiringKeys } from './announce-expiring-keys.ts';
import { createChatEvents } from './chat-events.ts';
import type { ChatEvents } from './chat-events.ts';
import { createDeliverNext } from './deliver.ts';
import type { DeliverDeps } from './deliver.ts';
import { createServeWebhook } from './serve-webhook.ts';
import type { WebhookDeliveryRepository } from '../../shared/infra/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookQueue } from '../../shared/infra/queue/webhook-queue.ts';

interface SweepDeliveriesDeps {
  deliveries: Pick<WebhookDeliveryRepository, 'due'>;
  queue: Pick<WebhookQueue, 'add'>;
  leases: Pick<LeaderLease, 'hold'>;
  clock: Clock;
}

const TASK = 'webhooks';
const WEBHOOKS_MAX = 1_000;

/**
 * Queues every webhook for which something is due: retries whose time has come, and what a Redis that was restarted or
 * a process that died has forgotten. One process of the fleet does so.
 */
function createSweepDeliveries({ deliveries, queue, leases, clock }: SweepDeliveriesDeps): () => Promise<void> {
  return async () => {
    if (!(await leases.hold(FLEET_SHARD, TASK))) return;
    const due = await deliveries.due(clock.now(), WEBHOOKS_MAX);
    await Promise.all(due.map((job) => queue.add('webhooks', job)));
  };
}

export interface WebhooksDeps {
  config: Pick<Config, 'webhooks'>;
  mongo: MongoConnection;
  redis: RedisClient;
  subscriber: RedisClient;
  keyspace: Keyspace;
  cipher: CredentialCipher;
  leases: LeaderLease;
  gate: Pick<ErasureGate, 'nameOf'>;
  clock: Clock;
  onAttempt: DeliverDeps['onAttempt'];
  closer: Closer;
  log: Logger;
}

const SWEEP_MS = 1_000;
/** How often the turn to look for expiring keys is thought of. */
const KEYS_LOOK_MS = 30_000;
/** An attempt that has begun takes up to 15 s. */
const CLOSING_MS = 17_000;

/** Opens what a worker needs for webhooks and starts it: deliveries, their sweep, the look-out for expiring keys. */
export async function startWebhooks(deps: WebhooksDeps): Promise<{ events: EventSink; chatEvents: ChatEvents }> {
  const { config, mongo, redis, subscriber, keyspace, leases, clock, closer, log } = deps;
  const webhooks = createWebhookRepository(mongo);
  const deliveries = createWebhookDeliveryRepository(mongo);
  const subscriptions = createSubscriptions({ webhooks, clock });
  await listenForAccessChanges(subscriber, subscriptions.forget, subscriptions.forgetAll);
  const queue = createWebhookQueue(redis, keyspace, (error) => {
    log.warn('The queue of webhooks reported an error.', { error });
  });
  closer.defer('webhook queue', () => queue.close());

  const events = createEventSink({ subscriptions, deliveries, queue, log });
  const chatEvents = createChatEvents({
    events,
    gate: deps.gate,
    watchAccount: createWatchAccount({ events, accounts: createAccountStates(mongo) }),
    clock,
    log,
  });
  closer.defer('webhook events', () => chatEvents.idle());

  const stopping = new AbortController();
  const deliverNext = createDeliverNext({
    webhooks,
    deliveries,
    events,
    clock,
    log,
    client: createWebhookClient({ allowPrivate: config.webhooks.allowPrivate }),
    cipher: deps.cipher,
    announce: createAccessFlags(redis, keyspace).announce,
    random: Math.random,
    onAttempt: deps.onAttempt,
  });
  const serve = createServeWebhook({ webhooks, queue, deliverNext, clock, stopping: stopping.signal });
  const workers = createWebhookWorkers({ client: redis, keyspace, serve, log });
  const warn = (what: string) => (error: unknown) => {
    log.warn(`${what} failed; the next round tries again.`, { error });
  };
  const sweeping = repeat(
    createSweepDeliveries({ deliveries, queue, leases, clock }),
    () => SWEEP_MS,
    warn('The sweep of webhook deliveries'),
  );
  const watchingKeys = repeat(
    createAnnounceExpiringKeys({ webhooks, events, leases, clock, keys: createExpiringKeys(mongo) }),
    () => KEYS_LOOK_MS,
    warn('Looking for expiring keys'),
  );
  closer.defer(
    'webhook deliveries',
    async () => {
      stopping.abort();
      await Promise.all([sweeping.stop(), watchingKeys.stop(), workers.close()]);
    },
    { limitMs: CLOSING_MS },
  );
  return { events, chatEvents };
}
