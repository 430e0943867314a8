import { overseersOf } from '../../../shared/contracts/space.ts';
import type { Logger } from '../../../shared/logging/logger.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { WatchAccount, EventSink, WebhookEvent } from '../../../shared/webhooks/publish.ts';
import type { TenantEvent, TenantEventListener } from '../../contract/tenant-events.ts';
import type { ProcessParts } from '../../../shared/process-parts.ts';
import { openPublishing } from '../../../shared/webhooks/publish.ts';

interface PublishTenantEventsDeps {
  events: EventSink;
  watchAccount: WatchAccount;
  clock: Clock;
  log: Logger;
}

/** The webhook events that follow from a tenant event; most have none. */
function toWebhookEvents({ type, by, target, details }: TenantEvent, now: number): WebhookEvent[] {
  const { tenantId, mode, requestId } = by;
  switch (type) {
    case 'key.created':
      return [
        {
          tenantId,
          mode: overseersOf(details.mode),
          type,
          cause: target,
          data: { key_id: target, mode: details.mode, scopes: [...details.scopes] },
          now,
        },
      ];
    case 'key.revoked':
      return [{ tenantId, mode: overseersOf(details.mode), type, cause: target, data: { key_id: target }, now }];
    case 'entity.deleted':
      // The same entity can be created and deleted again, so the request is the cause.
      return [{ tenantId, mode, type, cause: requestId, data: { entity_id: target }, now }];
    default:
      return [];
  }
}

function createPublishTenantEvents(deps: PublishTenantEventsDeps): TenantEventListener {
  const { events, watchAccount, clock, log } = deps;
  return async (event) => {
    const { tenantId } = event.by;
    const now = clock.now();
    const published = toWebhookEvents(event, now);
    try {
      // An adjustment can take credits away without a settlement, so the thresholds are checked here.
      if (event.type === 'credits.adjusted') published.push(...(await watchAccount(tenantId, now)));
    } catch (error) {
      log.error('Whether an adjustment passed a threshold is not known.', { tenantId, error });
    }
    if (published.length > 0) await events.tryPublish(published);
  };
}

export type IngressWebhooks = Awaited<ReturnType<typeof openWebhooks>>;

/** The ingress's part of webhooks: their resources, and publishing its own events. Workers deliver them. */
export async function openWebhooks(parts: ProcessParts) {
  const { cipher, config, clock, log } = parts;
  const { webhooks: repository, deliveries, queue, events, watchAccount } = await openPublishing(parts);
  return {
    parts: { repository, deliveries, queue, events, cipher, allowPrivate: config.webhooks.allowPrivate },
    publish: createPublishTenantEvents({ events, watchAccount, clock, log }),
    watchAccount,
    events,
  };
}
