import type { WebhookJob, WebhookQueueName } from '../../shared/contracts/jobs.ts';
import type { WebhookRepository } from '../../shared/infra/mongo/webhooks/webhook-repository.ts';
import type { WebhookQueue } from '../../shared/infra/queue/webhook-queue.ts';
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
export type ServeWebhook = (lane: WebhookQueueName, job: WebhookJob) => Promise<void>;

/** Deliveries to one receiver at the same time. */
const PARALLEL = 4;
/** Then it is the turn of others; what is left is found by the sweep. */
const TURN_MS = 20_000;

/** A receiver that fails or takes long goes on in the lane for such ones, behind its like. */
export function createServeWebhook({ webhooks, queue, deliverNext, clock, stopping }: ServeWebhookDeps): ServeWebhook {
  return async (lane, { tenantId, webhookId }) => {
    const webhook = await webhooks.find(tenantId, webhookId);
    if (lane === 'webhooks' && webhook !== undefined && isSlow(webhook)) {
      await queue.add('webhooks-slow', { tenantId, webhookId });
      return;
    }
    const until = clock.now() + TURN_MS;
    let isAtEnd = false;
    async function deliverAll(): Promise<void> {
      while (!isAtEnd && !stopping.aborted && clock.now() < until) {
        isAtEnd = (await deliverNext(tenantId, webhookId)) !== 'done';
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, deliverAll));
  };
}
