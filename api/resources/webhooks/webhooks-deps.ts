import type { Principal } from '../../../shared/domain/keys/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { CredentialCipher } from '../../../shared/infra/mongo/credentials.ts';
import type { WebhookDeliveryRepository } from '../../../shared/infra/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookRepository, WebhookRow } from '../../../shared/infra/mongo/webhooks/webhook-repository.ts';
import type { WebhookQueue } from '../../../shared/infra/queue/webhook-queue.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { EventSink } from '../../../shared/webhooks/event-sink.ts';
import { found } from '../../contract/path-parameters.ts';
import type { TenantEvents } from '../../tenant-events.ts';

/** The ingress's parts that webhooks need, opened in open-webhooks.ts. */
export interface WebhookParts {
  repository: WebhookRepository;
  deliveries: WebhookDeliveryRepository;
  queue: Pick<WebhookQueue, 'add'>;
  events: Pick<EventSink, 'ping'>;
  cipher: CredentialCipher;
  allowPrivate: boolean;
}

export interface WebhooksDeps {
  webhooks: WebhookParts;
  accessFlags: Pick<AccessFlags, 'announce'>;
  events: TenantEvents;
  clock: Clock;
}

/** Throws `not_found`. */
export async function findWebhook(
  { webhooks }: Pick<WebhooksDeps, 'webhooks'>,
  principal: Principal,
  webhookId: string,
): Promise<WebhookRow> {
  return found(await webhooks.repository.find(principal, webhookId), 'webhookId');
}

/** Throws `conflict`. */
export function assertActive({ status }: WebhookRow): void {
  if (status === 'active') return;
  throw new ServiceError('conflict', 'This webhook is disabled; set its `status` to active first.');
}
