import type { Connection, Model } from 'mongoose';

import type { ListQuery } from '../../contracts/list-page.ts';
import type { WebhookEventType } from '../../contracts/webhook-events.ts';
import { collection, createClaims, insertOnce, listRows } from '../collection.ts';
import type { RowOfSpace } from '../collection.ts';

/** An event that receivers are sent. `_id` is made of tenant, type and cause, so publishing a cause again makes no second one. */
export interface WebhookEventRow extends RowOfSpace {
  _id: string;
  type: WebhookEventType;
  /** The body as it is signed and sent, the same in every attempt. */
  bodyJson: string;
  /** The entity that the event is about: a deletion of the entity finds the event by it. */
  entityId?: string;
  /** Milliseconds since the epoch, as all times here. */
  createdAt: number;
  /** When MongoDB deletes it. */
  expiresAt: Date;
}

/** One POST to a webhook's receiver. */
export interface DeliveryAttempt {
  /** When it began. */
  at: number;
  durationMs: number;
  /** The HTTP status of the reply; absent: none came. */
  status?: number;
  /** Why it failed, in a sentence of this service; nothing of the reply is stored. */
  error?: string;
}

/** One event on its way to one webhook. It has the webhook's mode; callers look the webhook up first, in its space. */
export interface WebhookDeliveryRow extends RowOfSpace {
  _id: string;
  webhookId: string;
  eventId: string;
  type: WebhookEventType;
  status: 'pending' | 'succeeded' | 'failed';
  /** The latest ones, at most ATTEMPTS_KEPT, oldest first. */
  attempts: DeliveryAttempt[];
  /** Failed attempts since it was created or restarted. */
  failed: number;
  /** Present while it is pending: when the next attempt is due. During an attempt: when another worker may claim it. */
  nextAttemptAt?: number;
  /** A fence, which rises with every claim: only the holder of the latest claim may record its attempt. */
  claim: number;
  /** Present during an attempt: when its claim ends. */
  claimedUntil?: number;
  createdAt: number;
  /** When MongoDB deletes it. */
  expiresAt: Date;
}

export const webhookEventModel = collection<WebhookEventRow>('webhook_events', [
  [{ tenantId: 1, entityId: 1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

export const webhookDeliveryModel = collection<WebhookDeliveryRow>('webhook_deliveries', [
  [{ tenantId: 1, webhookId: 1, createdAt: -1 }],
  [{ tenantId: 1, webhookId: 1, status: 1, nextAttemptAt: 1 }],
  [{ status: 1, nextAttemptAt: 1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** The result of an attempt. With the status `pending`, and only then, it has `nextAttemptAt`. */
interface AttemptResult {
  attempt: DeliveryAttempt;
  status: WebhookDeliveryRow['status'];
  nextAttemptAt?: number;
}

interface DueWebhook {
  tenantId: string;
  webhookId: string;
}

export type WebhookDeliveryRepository = ReturnType<typeof createWebhookDeliveryRepository>;

/** A delivery can be restarted without end, so its list of attempts is bounded. */
export const ATTEMPTS_KEPT = 50;

/** Inserts the rows that are not stored, and leaves the others as they are. */
function upsertsOf<Row extends { _id: string }>(rows: readonly Row[]) {
  return rows.map(({ _id, ...rest }) => ({
    updateOne: { filter: { _id }, update: { $setOnInsert: rest }, upsert: true },
  }));
}

/** Webhooks of all tenants that have a delivery due, the longest due first, at most `limit`. */
async function findDue(deliveries: Model<WebhookDeliveryRow>, now: number, limit: number): Promise<DueWebhook[]> {
  const found = await deliveries.aggregate<{ _id: string; tenantId: string }>([
    { $match: { status: 'pending', nextAttemptAt: { $lte: now } } },
    { $group: { _id: '$webhookId', tenantId: { $first: '$tenantId' }, since: { $min: '$nextAttemptAt' } } },
    { $sort: { since: 1 } },
    { $limit: limit },
  ]);
  return found.map(({ _id, tenantId }) => ({ webhookId: _id, tenantId }));
}

/** Claims deliveries that are due, and stores the results of their attempts. */
function createDeliveryClaims(deliveries: Model<WebhookDeliveryRow>) {
  const claims = createClaims(deliveries);
  return {
    due: (now: number, limit: number): Promise<DueWebhook[]> => findDue(deliveries, now, limit),

    /**
     * Claims the pending delivery of the webhook that has been due for longest, for `leaseMs`: if nobody records the attempt
     * by then, another worker may claim it. Undefined: none is due.
     */
    claim(tenantId: string, webhookId: string, now: number, leaseMs: number): Promise<WebhookDeliveryRow | undefined> {
      const until = now + leaseMs;
      return claims.claim(
        { tenantId, webhookId, status: 'pending', nextAttemptAt: { $lte: now } },
        { nextAttemptAt: until, claimedUntil: until },
        { nextAttemptAt: 1 },
      );
    },

    /** Stores the result of the attempt for which the delivery was claimed. False: it has been claimed again since. */
    recordAttempt: (
      delivery: WebhookDeliveryRow,
      { attempt, status, nextAttemptAt }: AttemptResult,
    ): Promise<boolean> =>
      claims.write(delivery, {
        $set: { status, ...(nextAttemptAt === undefined ? {} : { nextAttemptAt }) },
        $unset: { claimedUntil: 1, ...(nextAttemptAt === undefined ? { nextAttemptAt: 1 } : {}) },
        $inc: { failed: status === 'succeeded' ? 0 : 1 },
        $push: { attempts: { $each: [attempt], $slice: -ATTEMPTS_KEPT } },
      }),

    /** Makes the delivery due at once, with all its attempts before it. False: an attempt is under way. */
    restart: (delivery: WebhookDeliveryRow, now: number): Promise<boolean> =>
      claims.write(
        delivery,
        { $set: { status: 'pending', nextAttemptAt: now, failed: 0 }, $unset: { claimedUntil: 1 }, $inc: { claim: 1 } },
        { $or: [{ claimedUntil: { $exists: false } }, { claimedUntil: { $lte: now } }] },
      ),
  };
}

export function createWebhookDeliveryRepository(connection: Connection) {
  const events = webhookEventModel(connection);
  const deliveries = webhookDeliveryModel(connection);

  return {
    ...createDeliveryClaims(deliveries),

    /** Rows that are stored already stay as they are, so it is safe to repeat. Events go first: every delivery has its event. */
    async insert(newEvents: readonly WebhookEventRow[], newDeliveries: readonly WebhookDeliveryRow[]): Promise<void> {
      await insertOnce(events.bulkWrite(upsertsOf(newEvents), { ordered: false }));
      await insertOnce(deliveries.bulkWrite(upsertsOf(newDeliveries), { ordered: false }));
    },

    async find(tenantId: string, webhookId: string, deliveryId: string): Promise<WebhookDeliveryRow | undefined> {
      return (await deliveries.findOne({ _id: deliveryId, tenantId, webhookId }).lean()) ?? undefined;
    },

    async findEvent(tenantId: string, eventId: string): Promise<WebhookEventRow | undefined> {
      return (await events.findOne({ _id: eventId, tenantId }).lean()) ?? undefined;
    },

    /** One row more than the limit. */
    list: (tenantId: string, webhookId: string, query: ListQuery): Promise<WebhookDeliveryRow[]> =>
      listRows(deliveries, { tenantId, webhookId }, query),

    /** Fails the pending deliveries of a webhook that is disabled or gone. Safe to repeat. */
    async failPending(tenantId: string, webhookId: string): Promise<void> {
      await deliveries.updateMany(
        { tenantId, webhookId, status: 'pending' },
        { $set: { status: 'failed' }, $unset: { nextAttemptAt: 1, claimedUntil: 1 }, $inc: { claim: 1 } },
      );
    },
  };
}
