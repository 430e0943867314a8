import type { WebhookJob, WebhookQueueName } from '../../shared/contracts/jobs.ts';
import type { WebhookRepository } from '../../shared/mongo/webhooks/webhook-repository.ts';
import type { WebhookQueue } from '../../shared/queue/queues.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { isSlow } from './deliver.ts';
import type { DeliverNext } from './deliver.ts';

export interface ServeWebhookDeps {
  webhooks: Pick<WebhookRepository, 'find'>;
  queue: Pick<WebhookQueue, 'add'>;
  deliverNext: DeliverNext;
  clock: Clock;
  /** Aborts when the worker stops: what has begun ends, nothing else begins. */
  stopping: AbortSignal;
}

/** Delivers what is due for one webhook. */
type ServeWebhook = (name: WebhookQueueName, job: WebhookJob) => Promise<void>;

/** Deliveries to one receiver at the same time. */
const PARALLEL = 4;
/** After this time a job ends, so that other webhooks get its place; the sweep finds the deliveries that are left. */
const TURN_MS = 20_000;
/** Jobs of one tenant that a worker runs at once in one queue: a quarter of what it runs. */
const PLACES_PER_TENANT = 16;

/**
 * A webhook whose receiver fails or is slow is handed on to the queue `webhooks-slow`, so that it holds nobody else up; so is
 * one whose tenant has all its places taken. If they are taken there, too, the job ends, and the sweep queues it again.
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

  const serve: ServeWebhook = async (name, job) => {
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
  };

  return {
    serve,
    /** Waits for the attempts that are under way. */
    async ended(): Promise<void> {
      await Promise.allSettled(underWay);
    },
  };
}
