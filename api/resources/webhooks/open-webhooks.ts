import type { Config } from '../../../shared/config/load-config.ts';
import type { CredentialCipher } from '../../../shared/infra/mongo/credentials.ts';
import type { WatchAccount } from '../../../shared/webhooks/account-watch.ts';
import type { EventSink } from '../../../shared/webhooks/event-sink.ts';
import { openPublishing } from '../../../shared/webhooks/open-publishing.ts';
import type { OpenPublishingDeps } from '../../../shared/webhooks/open-publishing.ts';
import type { TenantEventListener } from '../../tenant-events.ts';
import { createPublishTenantEvents } from './publish-tenant-events.ts';
import type { WebhookParts } from './webhooks-deps.ts';

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
