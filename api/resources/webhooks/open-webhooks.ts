import type { CredentialCipher } from '../../../shared/infra/mongo/credentials.ts';
import type { Config } from '../../../shared/config/load-config.ts';
import type { WatchAccount } from '../../../shared/webhooks/account-watch.ts';
import type { EventSink } from '../../../shared/webhooks/event-sink.ts';
import { openPublishing } from '../../../shared/webhooks/open-publishing.ts';
import type { OpenPublishingDeps } from '../../../shared/webhooks/open-publishing.ts';
import type { WebhookParts } from './route.ts';
import { createTelling } from './telling.ts';
import type { Telling } from './telling.ts';

export interface OpenWebhooksDeps extends OpenPublishingDeps {
  cipher: CredentialCipher;
  config: Config['webhooks'];
}

export interface IngressWebhooks {
  /** For the route. */
  parts: WebhookParts;
  /** An audit log that also tells receivers of what is noted in it. */
  telling: Telling;
  watchAccount: WatchAccount;
  events: Pick<EventSink, 'publish'>;
}

/** What the ingress needs of webhooks: their resources, and telling what its routes do. Workers deliver. */
export async function openWebhooks(deps: OpenWebhooksDeps): Promise<IngressWebhooks> {
  const { cipher, config, clock, log } = deps;
  const { webhooks: repository, deliveries, queue, events, watchAccount } = await openPublishing(deps);
  return {
    parts: { repository, deliveries, queue, events, cipher, allowPrivate: config.allowPrivate },
    telling: createTelling({ events, watchAccount, clock, log }),
    watchAccount,
    events,
  };
}
