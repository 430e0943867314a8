import type { ListQuery } from '../../../contracts/list-page.ts';
import { isDuplicateKey } from '../connection.ts';
import { listRows } from '../list-rows.ts';
import type { Models } from '../models.ts';
import type { DeliveryAttempt, WebhookDeliveryRow, WebhookEventRow } from './webhook-rows.ts';

/** What came of an attempt. `nextAttemptAt` belongs to `pending`. */
export interface AttemptResult {
  attempt: DeliveryAttempt;
  status: WebhookDeliveryRow['status'];
  nextAttemptAt?: number;
}

export interface DueWebhook {
  tenantId: string;
  webhookId: string;
}

export interface WebhookDeliveryRepository {
  /** What is there already stays as it is. Events go first: a delivery has an event. */
  insert(events: readonly WebhookEventRow[], deliveries: readonly WebhookDeliveryRow[]): Promise<void>;
  find(tenantId: string, webhookId: string, deliveryId: string): Promise<WebhookDeliveryRow | undefined>;
  findEvent(tenantId: string, eventId: string): Promise<WebhookEventRow | undefined>;
  /** One row more than the limit. */
  list(tenantId: string, webhookId: string, query: ListQuery): Promise<WebhookDeliveryRow[]>;
  /** Takes the webhook's delivery that has been due for longest; whoever dies with it loses it after `leaseMs`. */
  claim(tenantId: string, webhookId: string, now: number, leaseMs: number): Promise<WebhookDeliveryRow | undefined>;
  /** False: somebody else has taken the delivery since. */
  settle(delivery: WebhookDeliveryRow, result: AttemptResult): Promise<boolean>;
  /** Has it tried again from the beginning, unless an attempt is under way: false. */
  restart(delivery: WebhookDeliveryRow, now: number): Promise<boolean>;
  /** Ends whatever the webhook still waits for. */
  giveUp(tenantId: string, webhookId: string): Promise<void>;
  /** Webhooks of all tenants for which something is due. */
  due(now: number, limit: number): Promise<DueWebhook[]>;
}

/** A delivery that is asked for again and again keeps its latest attempts. */
export const ATTEMPTS_KEPT = 50;

/** Inserts what is not there. */
function upsertsOf<Row extends { _id: string }>(rows: readonly Row[]) {
  return rows.map(({ _id, ...rest }) => ({
    updateOne: { filter: { _id }, update: { $setOnInsert: rest }, upsert: true },
  }));
}

/** Another process may insert the same at the same time: then it is there. */
async function unlessThere(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}

export function createWebhookDeliveryRepository(models: Models): WebhookDeliveryRepository {
  const { webhookEvents: events, webhookDeliveries: deliveries } = models;

  return {
    async insert(newEvents, newDeliveries) {
      await unlessThere(events.bulkWrite(upsertsOf(newEvents), { ordered: false }));
      await unlessThere(deliveries.bulkWrite(upsertsOf(newDeliveries), { ordered: false }));
    },

    async find(tenantId, webhookId, deliveryId) {
      return (await deliveries.findOne({ _id: deliveryId, tenantId, webhookId }).lean()) ?? undefined;
    },

    async findEvent(tenantId, eventId) {
      return (await events.findOne({ _id: eventId, tenantId }).lean()) ?? undefined;
    },

    list: (tenantId, webhookId, query) => listRows(deliveries, { tenantId, webhookId }, query),

    async claim(tenantId, webhookId, now, leaseMs) {
      const until = now + leaseMs;
      const taken = await deliveries
        .findOneAndUpdate(
          { tenantId, webhookId, status: 'pending', nextAttemptAt: { $lte: now } },
          { $set: { nextAttemptAt: until, claimedUntil: until }, $inc: { claim: 1 } },
          { sort: { nextAttemptAt: 1 }, returnDocument: 'after' },
        )
        .lean();
      return taken ?? undefined;
    },

    async settle({ _id, tenantId, claim }, { attempt, status, nextAttemptAt }) {
      const { matchedCount } = await deliveries.updateOne(
        { _id, tenantId, claim },
        {
          $set: { status, ...(nextAttemptAt === undefined ? {} : { nextAttemptAt }) },
          $unset: { claimedUntil: 1, ...(nextAttemptAt === undefined ? { nextAttemptAt: 1 } : {}) },
          $inc: { failed: status === 'succeeded' ? 0 : 1 },
          $push: { attempts: { $each: [attempt], $slice: -ATTEMPTS_KEPT } },
        },
      );
      return matchedCount === 1;
    },

    async restart({ _id, tenantId, webhookId, claim }, now) {
      const { matchedCount } = await deliveries.updateOne(
        {
          _id,
          tenantId,
          webhookId,
          claim,
          $or: [{ claimedUntil: { $exists: false } }, { claimedUntil: { $lte: now } }],
        },
        { $set: { status: 'pending', nextAttemptAt: now, failed: 0 }, $unset: { claimedUntil: 1 }, $inc: { claim: 1 } },
      );
      return matchedCount === 1;
    },

    async giveUp(tenantId, webhookId) {
      await deliveries.updateMany(
        { tenantId, webhookId, status: 'pending' },
        { $set: { status: 'failed' }, $unset: { nextAttemptAt: 1, claimedUntil: 1 }, $inc: { claim: 1 } },
      );
    },

    async due(now, limit) {
      const found = await deliveries.aggregate<{ _id: string; tenantId: string }>([
        { $match: { status: 'pending', nextAttemptAt: { $lte: now } } },
        { $group: { _id: '$webhookId', tenantId: { $first: '$tenantId' }, since: { $min: '$nextAttemptAt' } } },
        { $sort: { since: 1 } },
        { $limit: limit },
      ]);
      return found.map(({ _id, tenantId }) => ({ webhookId: _id, tenantId }));
    },
  };
}
