import type { Config } from '../../shared/config/settings.ts';
import { WEBHOOK_QUEUE_NAMES } from '../../shared/contracts/jobs.ts';
import { createWebhookClient } from '../../shared/http/webhook-client.ts';
import type { CredentialCipher } from '../../shared/mongo/credentials.ts';
import { createExpiringKeys } from '../../shared/mongo/tenants/key-repository.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import { createAccessFlags } from '../../shared/redis/stores/access-flags.ts';
import { withTimeLimit, repeat } from '../../shared/lifecycle/clock.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import type { EventSink, OpenPublishingDeps } from '../../shared/webhooks/publish.ts';
import { openPublishing } from '../../shared/webhooks/publish.ts';
import type { ErasureGate } from '../../shared/erasure-gate.ts';
import { startDurableWork } from '../queue/durable-work.ts';
import type { QueueRecorder } from '../observers/queue-recorder.ts';
import type { WorkerEventBus } from '../pipeline/worker-events.ts';
import { createAnnounceExpiringKeys, createChatEvents } from './publish-events.ts';
import type { ChatEvents } from './publish-events.ts';
import { createDeliverNext } from './deliver.ts';
import { createServeWebhook } from './serve-webhook.ts';

export interface StartWebhooksDeps extends OpenPublishingDeps {
  config: Config;
  cipher: CredentialCipher;
  leases: LeaderLease;
  gate: ErasureGate;
  telemetry: WorkerEventBus;
  recorder: QueueRecorder;
}

/** How often a worker asks whether it is its turn to look for expiring keys. */
const KEYS_LOOK_MS = 30_000;
/** An attempt that has begun takes up to 15 s, and is then written down. */
const ATTEMPT_MS = 17_000;
/** For what closes once no attempt is under way. */
const CLOSING_MS = 5_000;

/** Opens what a worker needs for webhooks and starts it: events of requests, deliveries, their sweep, expiring keys. */
export async function startWebhooks(deps: StartWebhooksDeps): Promise<{ events: EventSink } & ChatEvents> {
  const { config, mongo, redis, keyspace, leases, telemetry, clock, closer, log } = deps;
  const { webhooks, deliveries, queue, events, watchAccount } = await openPublishing(deps);
  const chatEvents = createChatEvents({ events, gate: deps.gate, watchAccount, clock, log });

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
    telemetry,
  });
  const { serve, ended } = createServeWebhook({ webhooks, queue, deliverNext, clock, stopping: stopping.signal });
  const work = startDurableWork(WEBHOOK_QUEUE_NAMES, {
    ...deps,
    client: redis,
    run: serve,
    due: deliveries.due,
    queue: (job) => queue.add('webhooks', job),
  });
  const watchingKeys = repeat(
    createAnnounceExpiringKeys({ webhooks, events, leases, clock, keys: createExpiringKeys(mongo) }),
    () => KEYS_LOOK_MS,
    (error) => {
      log.warn('Looking for expiring keys failed; the next round tries again.', { error });
    },
  );
  const close = () => Promise.all([watchingKeys.stop(), work.close()]);
  deferClosing(closer, { stopping, ended, close });
  return { events, ...chatEvents };
}

interface ClosingParts {
  stopping: AbortController;
  /** Waits for the attempts that are under way. */
  ended: () => Promise<void>;
  close: () => Promise<unknown>;
}

/**
 * An attempt that is cut before it is written down is made again: the receiver gets its event twice. So attempts have the
 * time that they may take, beside what all steps share. Where no attempt is under way, a store that is away costs nothing here.
 */
export function deferClosing(closer: Closer, { stopping, ended, close }: ClosingParts): void {
  closer.defer('webhook deliveries', close, { limitMs: CLOSING_MS });
  const attempts = async () => {
    stopping.abort();
    await withTimeLimit(ended(), ATTEMPT_MS, `It took longer than ${ATTEMPT_MS} ms.`);
  };
  closer.defer('attempts for webhooks', attempts, { limitMs: Infinity });
}
