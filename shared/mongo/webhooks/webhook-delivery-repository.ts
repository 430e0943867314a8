import type { Connection, Model } from 'mongoose';

import type { ListQuery } from '../../contracts/list-page.ts';
import type { WebhookEventType } from '../../contracts/webhook-events.ts';
import { collection, createClaims, insertOnce, listRows } from '../collection.ts';
import type { RowOfSpace } from '../collection.ts';

/** `_id` has tenant, type and cause, so publishing a cause again makes no second event. */
export interface WebhookEventRow extends RowOfSpace {
  _id: string;
  type: WebhookEventType;
  /** Signed and sent unchanged in every attempt. */
  bodyJson: string;
  /** The event's entity, whose deletion finds the event by it. */
  entityId?: string;
  /** Times are milliseconds since the epoch. */
  createdAt: number;
  expiresAt: Date;
}

export interface DeliveryAttempt {
  at: number;
  durationMs: number;
  status?: number;
  /** A sentence of this service: nothing of the reply is stored. */
  error?: string;
}

/** One event for one webhook, in the webhook's mode; callers look the webhook up first, in its space. */
export interface WebhookDeliveryRow extends RowOfSpace {
  _id: string;
  webhookId: string;
  eventId: string;
  type: WebhookEventType;
  status: 'pending' | 'succeeded' | 'failed';
  /** At most ATTEMPTS_KEPT, the latest ones, oldest first. */
  attempts: DeliveryAttempt[];
  /** Counts since creation or restart. */
  failed: number;
  /** Pending deliveries only: the next attempt is due then. During an attempt: another worker may claim it then. */
  nextAttemptAt?: number;
  /** The fence rises with every claim: only the latest one may record its attempt. */
  claim: number;
  /** Present during an attempt: when its claim ends. */
  claimedUntil?: number;
  createdAt: number;
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
  [{ eventId: 1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** Only `pending` has `nextAttemptAt`. */
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

/** Rows that one call fails: it must end within the connection's time limit. */
const FAILED_AT_ONCE = 200;

/** Leaves stored rows as they are. */
function upsertsOf<Row extends { _id: string }>(rows: readonly Row[]) {
  return rows.map(({ _id, ...rest }) => ({
    updateOne: { filter: { _id }, update: { $setOnInsert: rest }, upsert: true },
  }));
}

/** For all tenants, the longest due first, at most `limit`. */
async function findDue(deliveries: Model<WebhookDeliveryRow>, now: number, limit: number): Promise<DueWebhook[]> {
  const found = await deliveries.aggregate<{ _id: string; tenantId: string }>([
    { $match: { status: 'pending', nextAttemptAt: { $lte: now } } },
    { $group: { _id: '$webhookId', tenantId: { $first: '$tenantId' }, since: { $min: '$nextAttemptAt' } } },
    { $sort: { since: 1 } },
    { $limit: limit },
  ]);
  return found.map(({ _id, tenantId }) => ({ webhookId: _id, tenantId }));
}

function createDeliveryClaims(deliveries: Model<WebhookDeliveryRow>) {
  const claims = createClaims(deliveries);
  return {
    due: (now: number, limit: number): Promise<DueWebhook[]> => findDue(deliveries, now, limit),

    /** Claims the webhook's longest due delivery; another worker may after `leaseMs`. Undefined: none is due. */
    claim(tenantId: string, webhookId: string, now: number, leaseMs: number): Promise<WebhookDeliveryRow | undefined> {
      const until = now + leaseMs;
      return claims.claim(
        { tenantId, webhookId, status: 'pending', nextAttemptAt: { $lte: now } },
        { nextAttemptAt: until, claimedUntil: until },
        { nextAttemptAt: 1 },
      );
    },

    /** False: the delivery has been claimed again since. */
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

    /** Makes the delivery due at once and keeps its attempts. False: an attempt is under way. */
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

    /** Stored rows stay as they are, so it is safe to repeat. Events go first: every delivery has its event. */
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

    list: (tenantId: string, webhookId: string, query: ListQuery): Promise<WebhookDeliveryRow[]> =>
      listRows(deliveries, { tenantId, webhookId }, query),

    /** For a webhook that is disabled or gone. Safe to repeat. */
    async failPending(tenantId: string, webhookId: string): Promise<void> {
      const pending = { tenantId, webhookId, status: 'pending' } as const;
      for (;;) {
        const page = await deliveries.find(pending, { _id: 1 }).limit(FAILED_AT_ONCE).lean();
        if (page.length === 0) return;
        await deliveries.updateMany(
          { ...pending, _id: { $in: page.map(({ _id }) => _id) } },
          { $set: { status: 'failed' }, $unset: { nextAttemptAt: 1, claimedUntil: 1 }, $inc: { claim: 1 } },
        );
      }
    },
  };
}
