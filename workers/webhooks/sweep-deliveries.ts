import type { WebhookDeliveryRepository } from '../../shared/infra/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookQueue } from '../../shared/infra/queue/webhook-queue.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

export interface SweepDeliveriesDeps {
  deliveries: Pick<WebhookDeliveryRepository, 'due'>;
  queue: Pick<WebhookQueue, 'add'>;
  leases: Pick<LeaderLease, 'hold'>;
  clock: Clock;
}

/** The shard whose lease stands for the whole fleet: deliveries belong to none. */
export const FLEET_SHARD = 0;
const TASK = 'webhooks';
const WEBHOOKS_MAX = 1_000;

/**
 * Queues every webhook for which something is due: retries whose time has come, and what a Redis that was restarted or
 * a process that died has forgotten. One process of the fleet does so.
 */
export function createSweepDeliveries({ deliveries, queue, leases, clock }: SweepDeliveriesDeps): () => Promise<void> {
  return async () => {
    if (!(await leases.hold(FLEET_SHARD, TASK))) return;
    const due = await deliveries.due(clock.now(), WEBHOOKS_MAX);
    await Promise.all(due.map((job) => queue.add('webhooks', job)));
  };
}
