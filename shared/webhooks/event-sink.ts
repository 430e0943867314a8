import type { WebhookEventData, WebhookEventType } from '../contracts/webhook-events.ts';
import type { SearchedSpace } from '../contracts/space.ts';
import { spaceFields } from '../infra/mongo/spaces.ts';
import type { Logger } from '../infra/logging/logger.ts';
import type {
  WebhookDeliveryRepository,
  WebhookDeliveryRow,
  WebhookEventRow,
} from '../infra/mongo/webhooks/webhook-delivery-repository.ts';
import type { Subscriber, WebhookRow } from '../infra/mongo/webhooks/webhook-repository.ts';
import type { WebhookQueue } from '../infra/queue/webhook-queue.ts';
import { createBriefCalls } from '../infra/redis/timing.ts';
import { derivedId } from '../lifecycle/ids.ts';
import type { Subscriptions } from './subscriptions.ts';

/** Something that happened in a tenant's account; webhooks of its mode, or of both, hear of it. */
export type WebhookEvent = {
  [Type in WebhookEventType]: SearchedSpace & {
    type: Type;
    /** What makes it this one: a cause has at most one event of a type. */
    cause: string;
    data: WebhookEventData[Type];
    /** Milliseconds since the epoch. */
    now: number;
    /** For a cause that may show again after more than the 30 days that an event is kept. */
    keptUntil?: number;
    /** A webhook that is not told: the one that the event is about. */
    except?: string;
  };
}[WebhookEventType];

/** Publishes events to the webhooks that subscribe to them. Costs a look into memory where none does. */
export interface EventSink {
  wants(space: SearchedSpace, types: readonly WebhookEventType[]): Promise<boolean>;
  /** Safe to repeat. Rejects when MongoDB is away: then nothing, or a part, is stored. */
  publish(events: readonly WebhookEvent[]): Promise<void>;
  /** The same for what cannot wait for MongoDB: logs the loss instead of rejecting. */
  tryPublish(events: readonly WebhookEvent[]): Promise<void>;
  /** Sends a `ping` to one webhook: one for each cause. */
  ping(webhook: WebhookRow, cause: string, now: number): Promise<WebhookDeliveryRow>;
}

export interface EventSinkDeps {
  subscriptions: Pick<Subscriptions, 'of'>;
  deliveries: Pick<WebhookDeliveryRepository, 'insert'>;
  queue: Pick<WebhookQueue, 'add'>;
  log: Logger;
}

export const DELIVERY_KEPT_DAYS = 30;
const KEPT_MS = DELIVERY_KEPT_DAYS * 24 * 3_600_000;

function toEventRow({ tenantId, mode, type, cause, data, now, keptUntil = 0 }: WebhookEvent): WebhookEventRow {
  const id = derivedId('evt', tenantId, type, cause);
  const entityId = 'entity_id' in data ? data.entity_id : null;
  return {
    _id: id,
    ...spaceFields({ tenantId, mode: mode === 'any' ? 'live' : mode }),
    type,
    bodyJson: JSON.stringify({ id, type, timestamp: new Date(now).toISOString(), data }),
    ...(entityId === null ? {} : { entityId }),
    createdAt: now,
    expiresAt: new Date(Math.max(now + KEPT_MS, keptUntil)),
  };
}

function toDeliveryRow(
  { _id: eventId, tenantId, type, createdAt, expiresAt }: WebhookEventRow,
  { webhookId, mode }: Subscriber,
) {
  const row: WebhookDeliveryRow = {
    _id: derivedId('dlv', eventId, webhookId),
    ...spaceFields({ tenantId, mode }),
    webhookId,
    eventId,
    type,
    status: 'pending',
    attempts: [],
    failed: 0,
    nextAttemptAt: createdAt,
    claim: 0,
    createdAt,
    expiresAt,
  };
  return row;
}

export function createEventSink({ subscriptions, deliveries, queue, log }: EventSinkDeps): EventSink {
  // The queue may be on a master that is away, while what is published is of tenants on the others.
  const calls = createBriefCalls();

  /** A webhook that cannot be queued now is found by the sweep. */
  async function enqueue(rows: readonly WebhookDeliveryRow[]): Promise<void> {
    const jobs = new Map(rows.map(({ tenantId, webhookId }) => [webhookId, { tenantId, webhookId }]));
    const added = await Promise.allSettled(
      [...jobs.values()].map((job) => calls.make(() => queue.add('webhooks', job))),
    );
    const failed = added.filter(({ status }) => status === 'rejected').length;
    if (failed > 0) log.warn('Webhooks could not be queued; the sweep finds them.', { count: failed });
  }

  async function publish(events: readonly WebhookEvent[]): Promise<void> {
    const eventRows: WebhookEventRow[] = [];
    const rows: WebhookDeliveryRow[] = [];
    for (const event of events) {
      const subscribed = await subscriptions.of(event, event.type);
      const subscribers = subscribed.filter(({ webhookId }) => webhookId !== event.except);
      if (subscribers.length === 0) continue;
      const eventRow = toEventRow(event);
      eventRows.push(eventRow);
      rows.push(...subscribers.map((subscriber) => toDeliveryRow(eventRow, subscriber)));
    }
    if (rows.length === 0) return;
    await deliveries.insert(eventRows, rows);
    await enqueue(rows);
  }

  return {
    async wants(space, types) {
      for (const type of types) if ((await subscriptions.of(space, type)).length > 0) return true;
      return false;
    },

    publish,

    async tryPublish(events) {
      try {
        await publish(events);
      } catch (error) {
        const { tenantId } = events[0] ?? {};
        const fields = { count: events.length, error, ...(tenantId === undefined ? {} : { tenantId }) };
        log.warn('Webhook events are lost, if anybody wants them: MongoDB could not be asked.', fields);
      }
    },

    async ping({ _id: webhookId, tenantId, mode = 'live' }, cause, now) {
      const eventRow = toEventRow({ tenantId, mode, type: 'ping', cause, data: { webhook_id: webhookId }, now });
      const row = toDeliveryRow(eventRow, { webhookId, mode });
      await deliveries.insert([eventRow], [row]);
      await enqueue([row]);
      return row;
    },
  };
}
