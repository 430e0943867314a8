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
import type { TenantEvents, TenantEventListener } from '../../tenant-events.ts';
import type { Config } from '../../../shared/config/load-config.ts';
import type { WatchAccount } from '../../../shared/webhooks/account-watch.ts';
import { openPublishing } from '../../../shared/webhooks/open-publishing.ts';
import type { OpenPublishingDeps } from '../../../shared/webhooks/open-publishing.ts';
import { createPublishTenantEvents } from './publish-tenant-events.ts';

/** What the webhook endpoints use. */
interface WebhookParts {
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
  { tenantId }: Principal,
  webhookId: string,
): Promise<WebhookRow> {
  return found(await webhooks.repository.find(tenantId, webhookId), 'webhookId');
}

/** Throws `conflict`. */
export function assertActive({ status }: WebhookRow): void {
  if (status === 'active') return;
  throw new ServiceError('conflict', 'This webhook is disabled; set its `status` to active first.');
}

export interface OpenWebhooksDeps extends OpenPublishingDeps {
  cipher: CredentialCipher;
  config: Config['webhooks'];
}

export interface IngressWebhooks {
  /** For the endpoints. */
  parts: WebhookParts;
  /** Publishes what is done in a tenant's account. */
  publish: TenantEventListener;
  watchAccount: WatchAccount;
  events: Pick<EventSink, 'publish'>;
}

/** What the ingress needs of webhooks: their resources, and publishing its own events. Workers deliver. */
export async function openWebhooks(deps: OpenWebhooksDeps): Promise<IngressWebhooks> {
  const { cipher, config, clock, log } = deps;
  const { webhooks: repository, deliveries, queue, events, watchAccount } = await openPublishing(deps);
  return {
    parts: { repository, deliveries, queue, events, cipher, allowPrivate: config.allowPrivate },
    publish: createPublishTenantEvents({ events, watchAccount, clock, log }),
    watchAccount,
    events,
  };
}
