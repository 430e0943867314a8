/**
 * The door of webhooks: publishes events with tenant, type, cause and data. A cause has one event of a type, however
 * often it is published.
 *
 * Stages and stores only emit on the process's event bus (shared/lifecycle); metrics, log lines and webhooks listen
 * there. Events that must survive a worker come from Redis: a booking, and the notice that `finish` leaves of a failed
 * or flagged request (workers/webhooks/publish-events.ts).
 *
 * Events, deliveries and their schedule are rows in MongoDB; a job only names a webhook that has something due
 * (docs/decisions/0018-webhooks.md). A worker claims one delivery at a time, signs it afresh and posts it to a checked,
 * pinned address (workers/webhooks/deliver.ts, shared/http/webhook-client.ts).
 */
import type { SearchedSpace } from '../contracts/space.ts';
import type { WebhookEventData, WebhookEventType } from '../contracts/webhook-events.ts';
import { ACCOUNT_EVENT_TYPES, accountEvents } from '../domain/account-events.ts';
import { putNewest } from '../domain/bounded-map.ts';
import type { Clock } from '../lifecycle/clock.ts';
import { derivedId } from '../lifecycle/ids.ts';
import type { Logger } from '../logging/logger.ts';
import { createAccountStates } from '../mongo/accounts/account-repository.ts';
import type { AccountStates } from '../mongo/accounts/account-repository.ts';
import { spaceFields } from '../mongo/collection.ts';
import { createWebhookDeliveryRepository } from '../mongo/webhooks/webhook-delivery-repository.ts';
import type {
  WebhookDeliveryRepository,
  WebhookDeliveryRow,
  WebhookEventRow,
} from '../mongo/webhooks/webhook-delivery-repository.ts';
import { createWebhookRepository } from '../mongo/webhooks/webhook-repository.ts';
import type { Subscriber, WebhookRow, WebhookRepository } from '../mongo/webhooks/webhook-repository.ts';
import type { ProcessParts } from '../process-parts.ts';
import { createWebhookQueue } from '../queue/queues.ts';
import type { WebhookQueue } from '../queue/queues.ts';
import { createBriefCalls } from '../redis/time-limits.ts';
import { listenForAccessChanges } from '../redis/stores/access-flags.ts';

/** Knows the events that each tenant's active webhooks want; most tenants have none, which costs no look-up. */
export type Subscriptions = ReturnType<typeof createSubscriptions>;

type Loaded = ReadonlyMap<WebhookEventType, readonly Subscriber[]>;

/** Changes are announced; this covers a lost announcement. */
const CACHED_MS = 30_000;
const TENANTS_MAX = 20_000;
const NONE: readonly Subscriber[] = [];

export function createSubscriptions({
  webhooks,
  clock,
}: {
  webhooks: Pick<WebhookRepository, 'subscriptions'>;
  clock: Clock;
}) {
  const known = new Map<string, { loaded: Promise<Loaded>; until: number }>();

  /** While MongoDB is away, the last known state is the best guess. */
  function load(tenantId: string, before: Promise<Loaded> | undefined): Promise<Loaded> {
    const fresh: Promise<Loaded> = webhooks.subscriptions(tenantId);
    const loaded = before === undefined ? fresh : fresh.catch(() => before);
    const entry = { loaded, until: clock.now() + CACHED_MS };
    putNewest(known, tenantId, entry, TENANTS_MAX);
    entry.loaded.catch(() => {
      if (known.get(tenantId) === entry) known.delete(tenantId);
    });
    return entry.loaded;
  }

  return {
    async of({ tenantId, mode }: SearchedSpace, type: WebhookEventType): Promise<readonly Subscriber[]> {
      const entry = known.get(tenantId);
      const loaded = await (entry !== undefined && entry.until > clock.now()
        ? entry.loaded
        : load(tenantId, entry?.loaded));
      const found = loaded.get(type) ?? NONE;
      return mode === 'any' ? found : found.filter((subscriber) => subscriber.mode === mode);
    },
    /** Called with the id of whatever has changed. */
    forget(tenantId: string): void {
      known.delete(tenantId);
    },
    forgetAll(): void {
      known.clear();
    },
  };
}

/** Webhooks of the event's mode, or of both, hear of it. */
export type WebhookEvent = {
  [Type in WebhookEventType]: SearchedSpace & {
    type: Type;
    cause: string;
    data: WebhookEventData[Type];
    /** Milliseconds since the epoch. */
    now: number;
    /** For a cause that may show again after more than the 30 days that an event is kept. */
    keptUntil?: number;
    /** This webhook is not told: the event is about it. */
    except?: string;
  };
}[WebhookEventType];

/** Publishes events to the webhooks that subscribe to them. Without any, it costs a look into memory. */
export type EventSink = ReturnType<typeof createEventSink>;

export interface EventSinkDeps {
  subscriptions: Subscriptions;
  deliveries: WebhookDeliveryRepository;
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

/** The sweep finds a webhook that cannot be queued now. */
function createEnqueueWebhooks({ queue, log }: EventSinkDeps) {
  // The queue may be on a master that is away while the events' tenants are on others.
  const calls = createBriefCalls();

  return async function enqueue(rows: readonly WebhookDeliveryRow[]): Promise<void> {
    const jobs = new Map(rows.map(({ tenantId, webhookId }) => [webhookId, { tenantId, webhookId }]));
    const added = await Promise.allSettled(
      [...jobs.values()].map((job) => calls.make(() => queue.add('webhooks', job))),
    );
    const failed = added.filter(({ status }) => status === 'rejected').length;
    if (failed > 0) log.warn('Webhooks could not be queued; the sweep finds them.', { count: failed });
  };
}

export function createEventSink(deps: EventSinkDeps) {
  const { subscriptions, deliveries, log } = deps;
  const enqueue = createEnqueueWebhooks(deps);

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
    async wants(space: SearchedSpace, types: readonly WebhookEventType[]): Promise<boolean> {
      for (const type of types) if ((await subscriptions.of(space, type)).length > 0) return true;
      return false;
    },

    /** Safe to repeat. Rejects when MongoDB is away: then nothing, or a part, is stored. */
    publish,

    /** For events that cannot wait for MongoDB: logs the loss instead of rejecting. */
    async tryPublish(events: readonly WebhookEvent[]): Promise<void> {
      try {
        await publish(events);
      } catch (error) {
        const { tenantId } = events[0] ?? {};
        const fields = { count: events.length, error, ...(tenantId === undefined ? {} : { tenantId }) };
        log.warn('Webhook events are lost, if anybody wants them: MongoDB could not be asked.', fields);
      }
    },

    /** Sends one `ping` for each cause. */
    async ping(
      { _id: webhookId, tenantId, mode = 'live' }: WebhookRow,
      cause: string,
      now: number,
    ): Promise<WebhookDeliveryRow> {
      const eventRow = toEventRow({ tenantId, mode, type: 'ping', cause, data: { webhook_id: webhookId }, now });
      const row = toDeliveryRow(eventRow, { webhookId, mode });
      await deliveries.insert([eventRow], [row]);
      await enqueue([row]);
      return row;
    },
  };
}

/** Finds the events that a change of a tenant's credits or budget calls for; none where no webhook subscribes. */
export type WatchAccount = (tenantId: string, now: number) => Promise<WebhookEvent[]>;

/** A cause counts as published this long: longer than the credits of one grant or purchase may be low. */
const REMEMBERED_MS = 400 * 24 * 3_600_000;

function createWatchAccount(deps: { events: EventSink; accounts: AccountStates }): WatchAccount {
  return async (tenantId, now) => {
    if (!(await deps.events.wants({ tenantId, mode: 'live' }, ACCOUNT_EVENT_TYPES))) return [];
    const state = await deps.accounts.read(tenantId);
    if (state === undefined) return [];
    return accountEvents(state.account, state.monthlyTokenBudget, now).map((event) => ({
      ...event,
      tenantId,
      // Test keys cost nothing.
      mode: 'live',
      now,
      keptUntil: now + REMEMBERED_MS,
    }));
  };
}

/** Subscriptions follow every change that is announced. */
export async function openPublishing(parts: ProcessParts) {
  const { mongo, redis, subscriber, keyspace, clock, closer, log } = parts;
  const webhooks = createWebhookRepository(mongo);
  const deliveries = createWebhookDeliveryRepository(mongo);
  const queue = createWebhookQueue(redis, keyspace, (error) => {
    log.warn('The queue of webhooks reported an error.', { error });
  });
  closer.defer('webhook queue', () => queue.close());
  const subscriptions = createSubscriptions({ webhooks, clock });
  await listenForAccessChanges(subscriber, subscriptions.forget, subscriptions.forgetAll);
  const events = createEventSink({ subscriptions, deliveries, queue, log });
  const watchAccount = createWatchAccount({ events, accounts: createAccountStates(mongo) });
  return { webhooks, deliveries, queue, events, watchAccount };
}
