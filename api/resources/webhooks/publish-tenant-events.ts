import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { WatchAccount } from '../../../shared/webhooks/account-watch.ts';
import type { EventSink, RaisedEvent } from '../../../shared/webhooks/event-sink.ts';
import type { TenantEvent, TenantEventListener } from '../../tenant-events.ts';

export interface PublishTenantEventsDeps {
  events: Pick<EventSink, 'tryPublish'>;
  watchAccount: WatchAccount;
  clock: Clock;
  log: Logger;
}

/** The webhook events of a tenant event; most have none. */
function toWebhookEvents({ type, by, target, details }: TenantEvent, now: number): RaisedEvent[] {
  const { tenantId, requestId } = by;
  switch (type) {
    case 'key.created':
      return [
        {
          tenantId,
          type,
          cause: target,
          data: { key_id: target, mode: details.mode, scopes: [...details.scopes] },
          now,
        },
      ];
    case 'key.revoked':
      return [{ tenantId, type, cause: target, data: { key_id: target }, now }];
    case 'entity.deleted':
      // The same entity can be created and deleted again, so the request is the cause.
      return [{ tenantId, type, cause: requestId, data: { entity_id: target }, now }];
    default:
      return [];
  }
}

/** Publishes what is done in a tenant's account to its webhooks, where they have subscribed to it. */
export function createPublishTenantEvents(deps: PublishTenantEventsDeps): TenantEventListener {
  const { events, watchAccount, clock, log } = deps;
  return async (event) => {
    const { tenantId } = event.by;
    const now = clock.now();
    const published = toWebhookEvents(event, now);
    try {
      // An adjustment takes credits away outside of settlement.
      if (event.type === 'credits.adjusted') published.push(...(await watchAccount(tenantId, now)));
    } catch (error) {
      log.error('Whether an adjustment passed a threshold is not known.', { tenantId, error });
    }
    if (published.length > 0) await events.tryPublish(published);
  };
}
