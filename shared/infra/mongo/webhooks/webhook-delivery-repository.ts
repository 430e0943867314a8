import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import type { ListQuery } from '../../../contracts/list-page.ts';
import type { WebhookEventType } from '../../../contracts/webhook-events.ts';
import { collection, count, number, options, required, text } from '../collection.ts';
import { insertOnce } from '../insert-once.ts';
import { listRows } from '../list-rows.ts';
import type { RowOfSpace } from '../spaces.ts';

/** What receivers are sent; `_id` is made of tenant, type and cause, so a cause has one event. */
export interface WebhookEventRow extends RowOfSpace {
  _id: string;
  type: WebhookEventType;
  /** The body as it is signed and sent, the same with every attempt. */
  bodyJson: string;
  /** The entity that the event is about, so that its deletion finds it. */
  entityId?: string;
  createdAt: number;
  /** MongoDB deletes it then. */
  expiresAt: Date;
}

export interface DeliveryAttempt {
  at: number;
  durationMs: number;
  status?: number;
  /** A sentence of ours; nothing of what the receiver replied. */
  error?: string;
}

/** One event for one webhook, whose mode it has: the webhook is looked for first, in its space. */
export interface WebhookDeliveryRow extends RowOfSpace {
  _id: string;
  webhookId: string;
  eventId: string;
  type: WebhookEventType;
  status: 'pending' | 'succeeded' | 'failed';
  /** The latest ones. */
  attempts: DeliveryAttempt[];
  /** Failed attempts since it was made or asked for again. */
  failed: number;
  /** Present while it is pending. During an attempt: when another worker may take it. */
  nextAttemptAt?: number;
  /** Rises with every attempt: only the latest may write what came of it. */
  claim: number;
  /** Present during an attempt. */
  claimedUntil?: number;
  createdAt: number;
  /** MongoDB deletes it then. */
  expiresAt: Date;
}

const webhookEventSchema = new Schema<WebhookEventRow>(
  {
    _id: required,
    tenantId: required,
    mode: text,
    type: required,
    bodyJson: required,
    entityId: text,
    createdAt: count,
    expiresAt: { type: Date, required: true },
  },
  options,
)
  .index({ tenantId: 1, entityId: 1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

const deliveryAttempt = new Schema<DeliveryAttempt>(
  { at: count, durationMs: count, status: number, error: text },
  { _id: false },
);

const webhookDeliverySchema = new Schema<WebhookDeliveryRow>(
  {
    _id: required,
    tenantId: required,
    mode: text,
    webhookId: required,
    eventId: required,
    type: required,
    status: required,
    attempts: [deliveryAttempt],
    failed: count,
    nextAttemptAt: number,
    claim: count,
    claimedUntil: number,
    createdAt: count,
    expiresAt: { type: Date, required: true },
  },
  options,
)
  .index({ tenantId: 1, webhookId: 1, createdAt: -1 })
  .index({ tenantId: 1, webhookId: 1, status: 1, nextAttemptAt: 1 })
  .index({ status: 1, nextAttemptAt: 1 })
  .index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

export const webhookEventModel = collection<WebhookEventRow>('WebhookEvent', 'webhook_events', webhookEventSchema);

export const webhookDeliveryModel = collection<WebhookDeliveryRow>(
  'WebhookDelivery',
  'webhook_deliveries',
  webhookDeliverySchema,
);

/** What came of an attempt. `nextAttemptAt` belongs to `pending`. */
interface AttemptResult {
  attempt: DeliveryAttempt;
  status: WebhookDeliveryRow['status'];
  nextAttemptAt?: number;
}

interface DueWebhook {
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

export function createWebhookDeliveryRepository(connection: Connection): WebhookDeliveryRepository {
  const events = webhookEventModel(connection);
  const deliveries = webhookDeliveryModel(connection);

  return {
    async insert(newEvents, newDeliveries) {
      await insertOnce(events.bulkWrite(upsertsOf(newEvents), { ordered: false }));
      await insertOnce(deliveries.bulkWrite(upsertsOf(newDeliveries), { ordered: false }));
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
