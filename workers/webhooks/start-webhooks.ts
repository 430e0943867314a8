import { WEBHOOK_QUEUE_NAMES } from '../../shared/contracts/jobs.ts';
import type { WebhookJob, WebhookQueueName } from '../../shared/contracts/jobs.ts';
import { createWebhookClient } from '../../shared/http/webhook-client.ts';
import { createExpiringKeys } from '../../shared/mongo/tenants/key-repository.ts';
import { createAccessFlags } from '../../shared/redis/stores/access-flags.ts';
import { withTimeLimit, repeat } from '../../shared/lifecycle/clock.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import { openPublishing } from '../../shared/webhooks/publish.ts';
import type { EventSink } from '../../shared/webhooks/publish.ts';
import { startDurableWork } from '../queue/durable-work.ts';
import type { QueueRecorder } from '../observers/queue-recorder.ts';
import type { WorkerParts } from '../pipeline/worker-parts.ts';
import { createAnnounceExpiringKeys, createChatEvents } from './publish-events.ts';
import type { ChatEvents } from './publish-events.ts';
import { createDeliverNext, isSlow } from './deliver.ts';
import type { DeliverNext } from './deliver.ts';
import type { WebhookRepository } from '../../shared/mongo/webhooks/webhook-repository.ts';
import type { WebhookQueue } from '../../shared/queue/queues.ts';

interface ServeWebhookDeps {
  webhooks: Pick<WebhookRepository, 'find'>;
  queue: Pick<WebhookQueue, 'add'>;
  deliverNext: DeliverNext;
  clock: Clock;
  /** Aborts when the worker stops: what has begun ends, nothing else begins. */
  stopping: AbortSignal;
}

/** Deliveries to one receiver at the same time. */
const PARALLEL = 4;
/** After this time a job ends, so that other webhooks get its place; the sweep finds the deliveries that are left. */
const TURN_MS = 20_000;
/** Jobs of one tenant that a worker runs at once in one queue: a quarter of what it runs. */
const PLACES_PER_TENANT = 16;

/**
 * A webhook whose receiver fails or is slow, or whose tenant has all its places taken, goes on to `webhooks-slow`,
 * where it holds nobody up. If they are taken there, too, the job ends, and the sweep queues it again.
 */
export function createServeWebhook(deps: ServeWebhookDeps) {
  const { webhooks, queue, deliverNext, clock, stopping } = deps;
  const underWay = new Set<ReturnType<DeliverNext>>();
  const taken: Record<WebhookQueueName, Map<string, number>> = { webhooks: new Map(), 'webhooks-slow': new Map() };

  async function takeTurn({ tenantId, webhookId }: WebhookJob): Promise<void> {
    const until = clock.now() + TURN_MS;
    let isAtEnd = false;
    async function deliverAll(): Promise<void> {
      while (!isAtEnd && !stopping.aborted && clock.now() < until) {
        const attempt = deliverNext(tenantId, webhookId);
        underWay.add(attempt);
        isAtEnd = (await attempt.finally(() => underWay.delete(attempt))) !== 'done';
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, deliverAll));
  }

  async function serve(name: WebhookQueueName, job: WebhookJob): Promise<void> {
    const { tenantId, webhookId } = job;
    const places = taken[name];
    const webhook = await webhooks.find({ tenantId, mode: 'any' }, webhookId);
    // Behind the look-up: jobs that begin at once would all find the places free.
    const own = places.get(tenantId) ?? 0;
    const isElsewhere = own >= PLACES_PER_TENANT || (webhook !== undefined && isSlow(webhook));
    if (name === 'webhooks' && isElsewhere) {
      await queue.add('webhooks-slow', { tenantId, webhookId });
      return;
    }
    if (own >= PLACES_PER_TENANT) return;
    places.set(tenantId, own + 1);
    try {
      await takeTurn(job);
    } finally {
      const left = (places.get(tenantId) ?? 1) - 1;
      if (left === 0) places.delete(tenantId);
      else places.set(tenantId, left);
    }
  }

  return {
    serve,
    /** Waits for the attempts that are under way. */
    async ended(): Promise<void> {
      await Promise.allSettled(underWay);
    },
  };
}

/** A worker asks this often whether it is its turn to look for expiring keys. */
const KEYS_LOOK_MS = 30_000;
/** An attempt that has begun takes up to 15 s, and is then written down. */
const ATTEMPT_MS = 17_000;
/** For what closes once no attempt is under way. */
const CLOSING_MS = 5_000;

export async function startWebhooks(
  parts: WorkerParts,
  recorder: QueueRecorder,
): Promise<{ events: EventSink } & ChatEvents> {
  const { config, mongo, redis, keyspace, leases, clock, closer, log } = parts;
  const { webhooks, deliveries, queue, events, watchAccount } = await openPublishing(parts);
  const chatEvents = createChatEvents({ ...parts, events, watchAccount });

  const stopping = new AbortController();
  const deliverNext = createDeliverNext({
    ...parts,
    webhooks,
    deliveries,
    events,
    client: createWebhookClient({ allowPrivate: config.webhooks.allowPrivate }),
    announce: createAccessFlags(redis, keyspace).announce,
    random: Math.random,
  });
  const { serve, ended } = createServeWebhook({ webhooks, queue, deliverNext, clock, stopping: stopping.signal });
  const work = startDurableWork(WEBHOOK_QUEUE_NAMES, {
    ...parts,
    recorder,
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
  ended: () => Promise<void>;
  close: () => Promise<unknown>;
}

/**
 * Gives attempts the time that they may take, beside what all steps share: one cut before it is written down is made
 * again, and the receiver gets its event twice. Where none is under way, a store that is away costs nothing here.
 */
export function deferClosing(closer: Closer, { stopping, ended, close }: ClosingParts): void {
  closer.defer('webhook deliveries', close, { limitMs: CLOSING_MS });
  const attempts = async () => {
    stopping.abort();
    await withTimeLimit(ended(), ATTEMPT_MS, `It took longer than ${ATTEMPT_MS} ms.`);
  };
  closer.defer('attempts for webhooks', attempts, { limitMs: Infinity });
}
